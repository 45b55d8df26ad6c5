"""Submissions: measured results in a form that anyone can check, and figures that papers report, marked as such."""
