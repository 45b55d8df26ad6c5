"""The Python interface: what the command line does, as functions that return objects. docs/python.md shows each.

Nothing heavy is imported until a function is called, so that `import harness` is quick. An argument that is left out,
or None, means the same default as on the command line. `progress` and `say` are for those who want to see the work:
`from harness.progress import bar`, then `progress=bar, say=print`.
"""

from harness.api.boards import advise, leaderboard, reproduce, submit, validate
from harness.api.index import load_index, write_index
from harness.api.measure import calibrate, evaluate, experiment, load_run, plan, settings, show
from harness.api.pages import encode, import_pages, import_vectors, load_backbone, load_benchmark, verify_backbone
from harness.runs.results import Results

__all__ = [
    "Results",
    "advise",
    "calibrate",
    "encode",
    "evaluate",
    "experiment",
    "import_pages",
    "import_vectors",
    "leaderboard",
    "load_backbone",
    "load_benchmark",
    "load_index",
    "load_run",
    "plan",
    "reproduce",
    "settings",
    "show",
    "submit",
    "validate",
    "verify_backbone",
    "write_index",
]
