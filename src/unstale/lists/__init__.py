"""Lists of sources that people keep: tables, plain text, OPML and sitemaps, read line by line and written whole."""
