"""A finished run as objects: its tables, differences and figures, and its methods as they were measured."""
