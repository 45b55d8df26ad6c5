"""Advice: the cheapest method, budget and codec that surely keeps what is asked, and what it costs."""
