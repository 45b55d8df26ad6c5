"""The bridge back: mteb searches a pruned page index by its own protocol, scores it and writes its own result files.

retriever = replay(benchmark, store, pruner, 0.1)
mteb.evaluate(retriever, mteb.get_task("VidoreDocVQARetrieval"))
"""

from .replay import Index, Replay, experiment, model_meta, replay
from .results import mteb_task, write_results

__all__ = ["Index", "Replay", "experiment", "model_meta", "mteb_task", "replay", "write_results"]
