"""`harness evaluate`: benchmark and store in, a run folder out."""
