"""Root searches, one file for each kind of question; every one of them ends, whatever it is asked.

meeting     at which prices many falling totals meet their targets: over all the doubles, with jumps
rising      the roots of many rising functions, without a derivative
passes      the price at which one dear total meets a budget, in as few evaluations as possible
steps       roughly where a falling function that moves in steps passes 0
between     one root between two ends, to the last digit
falling     where smooth curves that fall pass 0, and where one falling number comes down to its target
logarithms  roots of many functions that are nearly power laws

Searches that are compiled into another kernel stand in it (`learning.mixture.interval`): a compiled function cannot be
handed one.
"""
