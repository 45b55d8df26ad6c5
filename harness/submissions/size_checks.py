"""Is an index as large as it must be? Bytes follow from vectors, their width and the codec; budgets must be met."""

from __future__ import annotations

from functools import cache

from harness.evaluation.index_size import FLOAT16, bytes_per_page, vector_bits
from harness.metrics.results_table import benchmark_mean
from harness.submissions.checks import AGAIN, TOLERANCE, where
from harness.submissions.problems import Notes, printable
from harness.submissions.schema import Cell, Submission, Track
from pruners import Codec
from pruners.core.budget import drifted
from pruners.core.codec_catalog import codec_catalogue, read_codecs
from pruners.core.errors import PruneBoardError

LEAST_BITS = 1  # of a vector that a quantised method stores in a form of its own
MOST_OF_BUDGET = 1.5, 2.0
"""How much of its budget an adaptive method may keep: on the mean of a benchmark, and on one data set."""


def check_size(submission: Submission, notes: Notes) -> None:
    """Budgets that were missed, and indexes of another size than their vectors."""
    if submission.method.adaptive:
        _warn_of_drift(submission, notes)
    codec: Codec = FLOAT16
    if submission.codec is not None:
        found = _codec(submission, notes)
        if found is None:
            return
        codec = found
    pages = {data_set.name: data_set.pages for data_set in submission.benchmark.data_sets}
    for i, cell in enumerate(submission.cells):
        _check_bytes(submission, i, cell, FLOAT16 if cell.budget == 1.0 else codec, pages.get(cell.data_set), notes)


@cache
def read_codec(text: str) -> Codec | None:
    """A codec of this project by its text form; None if it is none. Nothing that was submitted is imported."""
    try:
        (codec,) = read_codecs(text)
    except (PruneBoardError, ValueError):
        return None
    return codec if codec_catalogue()[codec.name].source == "built-in" else None


def _codec(submission: Submission, notes: Notes) -> Codec | None:
    """The codec that a submission names, if what it says of it is so."""
    stated, dim = submission.codec, submission.backbone.dim
    assert stated is not None
    codec = read_codec(stated.expression)
    if codec is None or codec == FLOAT16:
        what = f"{printable(stated.expression)} is no codec of this project other than float16"
        notes.error("codec.expression", what, "`harness list codecs` shows them; without the field it is float16")
        return None
    if dim is None:
        notes.error("backbone.dim", "is missing: a codec's bytes follow from it", AGAIN)
        return None
    try:
        true = {"bytes_per_vector": codec.row(dim).itemsize, "shared_bytes": codec.shared_bytes(dim)}
    except PruneBoardError as error:
        notes.error("codec.expression", printable(error), AGAIN)
        return None
    for name, value in true.items():
        if getattr(stated, name) != value:
            what = f"is {getattr(stated, name)}, but {codec} takes {value} for vectors of {dim}"
            notes.error(f"codec.{name}", what, AGAIN)
    if dict(stated.parameters) != codec.parameters():
        notes.error("codec.parameters", f"are not those of {codec}: {codec.parameters()}", AGAIN)
    if not submission.method.expression.endswith(f"| {codec}"):
        notes.error("method.expression", f"does not end with | {codec}, which is its codec", AGAIN)
    return codec


def _check_bytes(submission: Submission, i: int, cell: Cell, codec: Codec, pages: int | None, notes: Notes) -> None:
    """Bytes are those of the vectors, no less. Of a codec they are those exactly, unless a user's method adds some."""
    method, dim, stated = submission.method, submission.backbone.dim, cell.bytes_per_page
    if dim is None or stated is None or cell.vectors_per_page is None:
        return
    own = codec == FLOAT16 and method.track is Track.quantised and cell.budget < 1
    count = pages or 1
    bits = vector_bits(cell.vectors_per_page * count, dim, codec, LEAST_BITS if own else None)
    shared = codec.shared_bytes(dim) + (method.shared_bytes if cell.budget < 1 else 0)
    needed = bytes_per_page(bits, shared, count)
    exact = codec != FLOAT16 and method.file_hash is None
    if stated < needed * (1 - TOLERANCE) or (exact and stated > needed * (1 + TOLERANCE)):
        form = "a bit for each" if own else str(codec)
        what = f"{stated:.2f} bytes a page cannot hold its vectors: {form} needs {needed:.2f}"
        if stated > needed:
            what = f"{stated:.2f} bytes a page are more than {form} needs: {needed:.2f}"
        way = "only the quantised track stores less than float16" if codec == FLOAT16 else AGAIN
        notes.error(f"{where(i, cell)}.bytes_per_page", what, way)


def _warn_of_drift(submission: Submission, notes: Notes) -> None:
    """One line for each budget that was missed; missed by far, it is another budget."""
    kept: dict[float, dict[str, float]] = {}
    for cell in submission.cells:
        if cell.budget < 1 and cell.realised is not None:
            kept.setdefault(cell.budget, {})[cell.data_set] = cell.realised
    for budget, by_data_set in kept.items():
        mean, most = float(benchmark_mean(list(by_data_set.values()))), max(by_data_set.values())
        if submission.claim != "reported" and (mean > MOST_OF_BUDGET[0] * budget or most > MOST_OF_BUDGET[1] * budget):
            what = f"keeps {mean:.3f} on the mean and up to {most:.3f}: that is another budget"
            notes.error(f"cells (budget {budget:g}).realised", what, "calibrate it, or submit it at what it keeps")
            continue
        off = {name: realised for name, realised in by_data_set.items() if drifted(realised, budget)}
        if off:
            worst = max(off, key=lambda name: abs(off[name] - budget))
            what = f"missed on {len(off)} of {len(by_data_set)} data sets, most on {printable(worst)}: {off[worst]:.4f}"
            notes.warn(f"cells (budget {budget:g}).realised", what, "read its figures beside its realised budget")
