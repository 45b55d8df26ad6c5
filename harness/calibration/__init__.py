"""What is learned before an evaluation, from pages and queries that it will not see."""
