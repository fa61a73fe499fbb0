"""What one look at a collection says of its members: readers of sitemaps, feeds, directories, buckets and indexes."""
