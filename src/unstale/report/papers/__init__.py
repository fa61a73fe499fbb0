"""The papers' report: every table, figure and quoted number of papers 000–004, computed again."""
