"""Benchmarks. They print ratios and are never tests: a machine's speed is no property of the code."""
