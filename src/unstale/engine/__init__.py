"""A body for the scheduler in real time: polls real sources through the ports, and tells of what changed."""
