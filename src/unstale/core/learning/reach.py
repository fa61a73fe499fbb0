"""How far due times are spread, put off and believed: what kernels and their twins in NumPy have in common."""

from __future__ import annotations

#: relative half-width of a jittered interval: missed changes grow by 0.08 %
SPREAD = 0.05
#: so many failures in a row are taken for chance; every further one doubles the interval, six times at most: 64 of them
BY_CHANCE = 2
MOST_DOUBLINGS = 6
#: relative half-width of a backed-off interval: sources that failed together do not come back together
FAILURE_SPREAD = 0.5
#: 1/golden ratio and its companion: multiples modulo 1 fill [0, 1) evenly
GOLDEN, PLASTIC = 0.6180339887498949, 0.7548776662466927
#: in logarithms: how far from where it was seen an interval is believed, and how far a price may take it, unseen
NEAR, FAR = 0.05, 0.5
#: a number times this, less what that exceeds the number by, keeps its first 26 binary digits
SPLIT = 2.0**27 + 1.0
