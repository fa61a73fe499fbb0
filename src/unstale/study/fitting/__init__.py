"""Diagnosing a history: which law its gaps follow, what it remembers, how it drifts, when it is awake."""
