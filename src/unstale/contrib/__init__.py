"""Unstale inside other people's programs; each module needs the one it is named after."""
