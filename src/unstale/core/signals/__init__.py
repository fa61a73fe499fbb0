"""What one look at a collection is worth, and a poll of a member given its signals."""
