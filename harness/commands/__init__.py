"""One file a command. These files are imported for `--help`, so they import torch and friends inside the functions."""
