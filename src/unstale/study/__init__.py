"""What researchers use and no operator's run needs: the papers' own models, classical estimators, laws of gaps.

Pure numbers, like `core`, and above it: nothing in `core`, `keeper`, `engine` or `planning` may import this room.
"""
