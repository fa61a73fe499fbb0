"""Worlds in virtual time: what a plan would have achieved, measured instead of computed."""
