"""The seed of everything that is drawn, unless a run says otherwise."""

SEED = 42
