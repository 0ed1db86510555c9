"""Papers' own machines: complete, tested, and no part of what a user of the core meets.

Import the paper that you reproduce, as `from gpflow_bsvm.papers import gold2003`. Nothing outside
of this folder and of `saving` imports it.
"""
