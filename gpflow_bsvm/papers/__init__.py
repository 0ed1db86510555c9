"""Reproductions of papers: complete and tested, but apart from the core that users meet.

Import the paper that you reproduce, as `from gpflow_bsvm.papers import gold2003`. Nothing outside
of this folder and of `saving` imports it.
"""
