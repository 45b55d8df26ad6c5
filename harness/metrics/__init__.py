"""What is measured: ranking quality, score retention, and how sure one can be of both."""
