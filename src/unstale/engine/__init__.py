"""A body for the keeper in real time: polls real sources through the ports, and tells of what changed."""
