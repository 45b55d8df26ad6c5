"""The harness: benchmarks, backbones, stores, scoring, metrics, evaluation, and the command line over them."""

import os

# Idle threads of OpenMP spin unless told to sleep. On a machine that does anything else they then take the cores that the
# working ones need: encoding pages with two threads on two busy cores took four to twelve times as long (measured).
# It is read once, when torch is first imported, so it stands here.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
