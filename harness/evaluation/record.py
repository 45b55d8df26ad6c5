"""What a run was made of, written into its folder: so it can be submitted without the model, the pages or the methods.

stores.json            each data set's counts, languages and content hashes, and the key of its store
benchmark/             page ids and relevance, as tables
backbone.json          the retriever's card
methods.json           what each method is, with what it learned
learned/               tensors that methods learned, such as a codebook
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from harness.backbones.contract import Backbone
from harness.benchmarks.benchmark import Benchmark
from harness.benchmarks.data_set import DataSet
from harness.benchmarks.tables import pages_table, qrels_table
from harness.evaluation.calibration import thresholds
from harness.evaluation.config import Config
from harness.evaluation.index_size import FLOAT16
from harness.evaluation.made_by import OWN, files_of
from harness.evaluation.methods import Method, slug
from harness.evaluation.run_folder import RunFolder
from harness.store.reader import Store
from pruners import Codec, Pruner
from pruners.core import identity
from pruners.core.errors import CatalogError
from pruners.core.identity import all_parts
from pruners.core.learned_state import UnwritableError, as_tree, pack_tensors
from pruners.core.live_code import place
from pruners.core.plugins import CatalogEntry
from pruners.guests.guest import Guest


def write_record(
    run: RunFolder,
    config: Config,
    benchmark: Benchmark,
    backbone: Backbone,
    stores: Mapping[str, Store],
    methods: Sequence[Method],
    known: Mapping[str, CatalogEntry],
    made_by: Mapping[str, Mapping[str, str]],
) -> None:
    """`known` are the catalogue's entries, `made_by` says of each method what its results are made of."""
    run.write_json(
        "stores.json", {data_set.name: _data_set(data_set, stores[data_set.name]) for data_set in benchmark.data_sets}
    )
    run.write_bytes("benchmark/pages.parquet", pages_table(benchmark.data_sets))
    run.write_bytes("benchmark/qrels.parquet", qrels_table(benchmark.data_sets))
    attention = getattr(backbone, "attention_path", None)
    facts = {"attention": attention, "benchmark": benchmark.name, "profile": config.profile}
    run.write_json("backbone.json", {**backbone.card.as_dict(), **facts})
    described = {}
    dim = next(iter(stores.values())).dim
    for method in methods:
        state, tensors = _state(method.pruner)
        if tensors:
            run.write_bytes(f"learned/{method.slug}.safetensors", pack_tensors(tensors))
        described[method.text] = {**describe(method, known, made_by[method.text], dim), **state}
    run.write_json("methods.json", described)
    for codec in {method.codec_text: method.codec for method in methods}.values():
        if codec.learns:
            run.write_bytes(learned_by(codec), pack_tensors(as_tree(codec)[1]))


def learned_by(codec: Codec) -> str:
    """The file of what a codec learned: one for all methods that it stores."""
    return f"learned/codec {slug(str(codec))}.safetensors"


def with_own(known: Mapping[str, CatalogEntry], own: Sequence[Pruner]) -> dict[str, CatalogEntry]:
    """The catalogue's entries and one for each method, given as an object, that it does not have."""
    found = dict(known)
    for cls in dict.fromkeys(type(part) for pruner in own for part in all_parts(pruner)):
        name, module = cls.declaration.name, cls.__module__
        entry = found.get(name)
        if entry is not None and entry.module == module:
            continue
        file, line = place(cls)
        if entry is not None and (entry.file, entry.symbol) != (file, cls.__qualname__):
            raise CatalogError(f"the name {name!r} is taken by {entry.place}; give your method another one")
        summary = (cls.__doc__ or "").strip().partition("\n")[0]
        found[name] = entry or CatalogEntry(name, "", {}, summary, (), file, line, cls.__qualname__, module, OWN)
    return found


def _state(pruner: Pruner) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """What `Results.method` makes the same pruner of again; or the reason why it cannot."""
    try:
        tree, tensors = pruner.kept() if isinstance(pruner, Guest) else as_tree(pruner)
    except UnwritableError as error:
        return {"state": None, "no_state": str(error)}, {}
    return {"state": tree}, tensors


def describe(method: Method, known: Mapping[str, CatalogEntry], made_by: Mapping[str, str], dim: int) -> dict[str, Any]:
    """A method in words and numbers. `composition` is what really ran: presets unfolded, windows bound."""
    pruner, declaration = method.pruner, method.pruner.declaration
    entry = known[pruner.name]
    given = any(known[part.name].source == OWN for part in all_parts(pruner))
    return {
        "slug": method.slug,
        "name": pruner.name,
        "summary": entry.summary,
        "paper": declaration.paper,
        "output": declaration.output,
        "budget": pruner.budget_kind,
        "diagnostic": declaration.diagnostic,
        "needs": list(pruner.needs),
        "trials": method.trials,
        "own_threshold": method.own_threshold,
        "partner_of": method.partner_of,
        "parameters": pruner.facts.parameters if isinstance(pruner, Guest) else identity.parameters(pruner),
        "composition": made_by["composition"],
        "thresholds": thresholds(pruner),
        "shared_bytes": method.shared_bytes(dim),
        "source": entry.source,
        "file": entry.file.name if entry.source == "file" else None,
        "file_hash": made_by["code"] if files_of(pruner) or given else None,
        "texts": dict(pruner.texts) if isinstance(pruner, Guest) else {},
        "source_hash": pruner.source_hash if isinstance(pruner, Guest) else None,
        "made_by": dict(made_by),
        **({} if method.codec == FLOAT16 else {"codec": describe_codec(method.codec, dim)}),
    }


def describe_codec(codec: Codec, dim: int) -> dict[str, Any]:
    """A codec other than float16, which stands where nothing is said."""
    return {
        "text": str(codec),
        "name": codec.name,
        "parameters": identity.parameters(codec),
        "bytes_per_vector": codec.row(dim).itemsize,
        "shared_bytes": codec.shared_bytes(dim),
        "paper": codec.declaration.paper,
        "state": as_tree(codec)[0],
    }


def _data_set(data_set: DataSet, store: Store) -> dict[str, Any]:
    judged = [query for query in store.query_ids if any(grade > 0 for grade in data_set.qrels.get(query, {}).values())]
    return {
        "store": store.key,
        "revision": data_set.revision,
        "pinned": "nothing is pinned" if data_set.differs is None else list(data_set.differs) or "as pinned",
        "pages": len(data_set.page_ids),
        "queries": len(judged),
        "languages": sorted({data_set.languages.get(query, "") for query in judged} - {""}),
        "content": dict(data_set.content),
    }
