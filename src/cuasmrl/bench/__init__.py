"""Benchmarks: each measures on this machine and gives the rows of a table."""
