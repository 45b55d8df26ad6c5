"""Exact MaxSim of every method at every budget, for about the price of one pass over the full page vectors."""
