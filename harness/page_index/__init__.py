"""The index itself: pages pruned by a method as a run measured it, stored by its codec, written and read."""
