"""Change histories of real sources: read, judged for what is wrong with them, imported from where they are kept."""
