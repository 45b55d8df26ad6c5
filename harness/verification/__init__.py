"""Whether a backbone is what it says: its tensors, vectors, signals, prompts, and the published figure."""
