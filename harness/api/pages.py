"""Pages, retrievers and stores: what has to be there before anything is measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.api.arguments import Say, nobody

if TYPE_CHECKING:
    from harness.backbones.contract import Backbone
    from harness.benchmarks.benchmark import Benchmark
    from harness.importing.report import ImportReport
    from harness.progress import Progress
    from harness.store.reader import Store
    from harness.verification.report import Check, VerificationReport


def load_benchmark(name: str) -> Benchmark:
    """A benchmark by name (`minidocs`, `vidore-v2`, a task of MTEB) or folder: its data sets are `.data_sets`."""
    from harness.benchmarks.benchmark import load_benchmark

    return load_benchmark(name)


def load_backbone(
    name: str = "nano", *, device: str | None = None, dtype: str | None = None, max_visual_tokens: int | None = None
) -> Backbone:
    """A retriever: `name`, `name=folder`, `name=id@revision`, or `your_file.py`."""
    from harness.backbones import registry
    from harness.backbones.contract import Options

    return registry.load(name, Options(device=device, dtype=dtype, max_visual_tokens=max_visual_tokens))


def verify_backbone(
    name: str,
    *,
    task: str | None = None,
    device: str | None = None,
    dtype: str | None = None,
    max_visual_tokens: int | None = None,
    store: Path | str | None = None,
    progress: Progress | None = None,
    say: Callable[[Check], None] | None = None,
) -> VerificationReport:
    """Check that a backbone is what it says, before a long run. `say` is told each check as it is done."""
    from harness.backbones.contract import Options
    from harness.cache import default_root
    from harness.progress import quiet
    from harness.verification.verify import verify

    options = Options(device=device, dtype=dtype, max_visual_tokens=max_visual_tokens)
    root, told = Path(store) if store else default_root(), say or (lambda check: None)
    return verify(name, options, task=task, stores=root, progress=progress or quiet, say=told)


def encode(
    backbone: Backbone | str = "nano",
    benchmark: Benchmark | str = "minidocs",
    *,
    store: Path | str | None = None,
    device: str | None = None,
    dtype: str | None = None,
    max_visual_tokens: int | None = None,
    batch_size: int | None = None,
    vectors: str = "float16",
    attention_from: str | None = None,
    repair: bool = False,
    part: str | None = None,
    engine: str | None = None,
    ray_address: str | None = None,
    ray_gpus_per_worker: float | None = None,
    progress: Progress | None = None,
    say: Say | None = None,
) -> dict[str, Store]:
    """The stores of a benchmark, one a data set, by name; encoded if they are not there yet. `stores[name].page(0)`.

    `part="3/8"` encodes the third of eight parts of each, beside other processes or machines that encode the others;
    what comes back are the stores that are finished then. With `engine="ray"` a cluster does so by itself.
    """
    from harness.encode import default_root, encode_part
    from harness.encode_on import encode_on
    from harness.engine.engine import open_engine
    from harness.evaluation.head import head_of_encoding
    from harness.progress import quiet
    from harness.store.part import WHOLE, Part
    from harness.store.reader import Store
    from harness.store.sidecar import read_manifest
    from pruners.core.errors import PruneBoardError

    loaded = loaded_backbone(backbone, device, dtype, max_visual_tokens)
    pages = load_benchmark(benchmark) if isinstance(benchmark, str) else benchmark
    if attention_from is not None:
        from harness.backbones.attention_source import with_attention_from

        loaded = probed = with_attention_from(loaded, attention_from)
        (say or nobody)(f"Attention is read from {probed.checkpoint.name}.")
    root = Path(store) if store else default_root()
    more: dict[str, Any] = {"vector_dtype": vectors, "batch_size": batch_size, "repair": repair}
    more |= {"progress": progress or quiet, "say": say or nobody}
    chosen = Part.parse(part) if part else WHOLE
    stores = {}
    if engine not in (None, "processes") and part is not None:
        raise PruneBoardError(f"--engine {engine} makes parts by itself: leave --part away")
    with open_engine(engine, ray_address=ray_address, ray_gpus_per_worker=ray_gpus_per_worker) as (opened, _):
        if line := head_of_encoding(pages.data_sets, loaded, root, opened, vector_dtype=vectors, part=chosen):
            (say or nobody)(line)
        if opened.elsewhere:
            return {each.name: encode_on(opened, loaded, each, root, **more) for each in pages.data_sets}
    for data_set in pages.data_sets:
        folder = encode_part(loaded, data_set, root, chosen, **more)
        found = read_manifest(folder)
        if found.complete:
            stores[data_set.name] = Store(folder)
        else:
            done = sum(len(found.pages_of(index)) for index in found.shards)
            (say or nobody)(f"{folder}: {done} of {len(found.page_ids)} pages are there; other parts are missing")
    return stores


def import_pages(
    sources: Sequence[Path | str],
    out: Path | str,
    *,
    queries: str = "labels",
    dpi: int = 144,
    ocr: bool = False,
    keep_contents_pages: bool = False,
    min_words: int = 2,
    pairs: int | None = None,
    progress: Progress | None = None,
) -> ImportReport:
    """PDFs or images as a benchmark in ViDoRe's layout, labelled by you or by their outlines (`queries="outline"`)."""
    from harness.importing.from_labels import has_labels, import_labelled
    from harness.importing.from_outline import OutlineSettings, import_outlines
    from harness.importing.ocr import reader
    from harness.progress import quiet
    from pruners.core.errors import PruneBoardError

    paths, bar = [Path(source) for source in sources], progress or quiet
    if queries not in ("labels", "outline"):
        raise PruneBoardError(f"--queries {queries!r} is unknown; write labels or outline")
    if queries == "outline":
        asked = OutlineSettings(dpi=dpi, min_words=min_words, keep_contents_pages=keep_contents_pages, pairs=pairs)
        return import_outlines(paths, Path(out), asked, reader() if ocr else None, bar)
    if len(paths) != 1 or not has_labels(paths[0]):
        raise PruneBoardError(
            f"{' '.join(map(str, paths))} is no folder with queries.jsonl and qrels.tsv; write these, "
            "or let the PDFs ask: --queries outline"
        )
    return import_labelled(paths[0], Path(out), dpi, reader() if ocr else None, bar)


def import_vectors(
    pages: Path | str, queries: Path | str, out: Path | str, *, name: str, vectors: str = "float16", note: str = ""
) -> Store:
    """A store from vectors one already has; `backbone="store=FOLDER"` evaluates it."""
    from harness.store.import_vectors import import_vectors as run

    return run(Path(pages), Path(queries), Path(out), name=name, vector_dtype=vectors, note=note)


def loaded_backbone(backbone: Backbone | str, device: str | None, dtype: str | None, most: int | None) -> Backbone:
    """A retriever that may be given by its name."""
    if isinstance(backbone, str):
        return load_backbone(backbone, device=device, dtype=dtype, max_visual_tokens=most)
    return backbone
