"""Where work is done: by processes of this machine, or by a Ray cluster. Nothing here changes a number."""
