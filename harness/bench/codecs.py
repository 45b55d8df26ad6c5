"""What codecs cost: encoding and decoding a page beside faiss and plain numpy, and a sweep over methods and codecs.

CPU time of one thread, medians; everything takes turns in this process on the same pages. Before a time is printed,
decoded vectors are compared with what plain numpy reads from the same bytes, codes with those of faiss where it has the
same ones (product codes, sign bits), and scores with those of each cell by itself.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from harness.bench.plain_codecs import plain_decode, refuse_other_vectors
from harness.evaluation.index_size import FLOAT16
from harness.progress import Progress
from harness.scoring.queries import QueryTiles, tile_queries
from harness.scoring.sweep import score_page
from pruners import (
    STANDARD,
    Codec,
    Page,
    PruneBoardError,
    Subset,
    Window,
    catalogue,
    prune,
    resolve,
    synthetic_page,
    unit,
)
from pruners.core.apply import calibrate
from pruners.core.codec_catalog import read_codecs

CODECS = "int8,int4,binary,pq,residual,turboquant,dims(64),pca(64)"
SWEPT = "float16,int8,int4,binary"
ROUNDS = 5
TOLERANCE = 1e-3  # of a score, a sum of some twenty products in float32
PAGE_COLUMNS = {
    "codec": "codec",
    "bytes": "bytes a vector",
    "encode_ms": "encode ms",
    "faiss_encode_ms": "faiss",
    "decode_ms": "decode ms",
    "faiss_decode_ms": "faiss",
    "numpy_decode_ms": "numpy, one by one",
}
SWEEP_COLUMNS = {"way": "way", "seconds": "CPU s", "ratio": "x one full pass"}

Work = Callable[[], Any]


def measure_pages(n: int, dim: int, progress: Progress) -> list[dict]:
    """One row a codec: milliseconds to encode and to decode a page of `n` vectors."""
    torch.set_num_threads(1)
    page, learned = _page(n, dim, 0).vectors.numpy(), np.concatenate([_page(n, dim, i).vectors for i in range(1, 9)])
    rows = []
    with threadpool_limits(1), progress("encode and decode", total=len(read_codecs(CODECS)), done=0) as advance:
        for bare in read_codecs(CODECS):
            codec = bare.calibrate(learned)
            stored, data = codec.encode(page), codec.pack(page)
            refuse_other_vectors(codec, data, dim)
            works: dict[str, Work] = {
                "encode_ms": partial(codec.encode, page),
                "decode_ms": partial(codec.decode, stored, dim),
                "numpy_decode_ms": partial(plain_decode, codec, data, dim),
                **_faiss(codec, page, learned),
            }
            times = _in_turns(works)
            size = codec.row(dim).itemsize
            rows.append({"codec": str(codec), "bytes": size, **{k: round(v, 2) for k, v in times.items()}})
            advance(1)
    return rows


def measure_sweep(pages: int, queries: int, tokens: int, progress: Progress) -> list[dict]:
    """All methods x standard budgets x codecs: one full pass, our sweep, and each cell by itself."""
    torch.set_num_threads(1)
    made = [_page(1024, 128, seed) for seed in range(pages)]
    asked = [unit(torch.randn(tokens, 128, generator=torch.Generator().manual_seed(i))) for i in range(queries)]
    tiles, codecs = tile_queries(asked), read_codecs(SWEPT)
    for codec in codecs:
        refuse_other_vectors(codec, codec.pack(made[0].vectors.numpy()), 128)
    results = _pruned(made)
    subsets = [[one for one in of_page if isinstance(one, Subset)] for of_page in results]
    cells = len(results[0]) * len(STANDARD) * len(codecs)
    works: dict[str, Work] = {
        "one full pass: float16, no method": lambda: [score_page(page.vectors, [], tiles) for page in made],
        f"{len(subsets[0])} subset methods, float16": lambda: _sweep(made, subsets, codecs[:1], tiles),
        f"{len(subsets[0])} subset methods, {len(codecs)} codecs": lambda: _sweep(made, subsets, codecs, tiles),
        f"all {len(results[0])} methods, float16": lambda: _sweep(made, results, codecs[:1], tiles),
        (every := f"all {len(results[0])} methods, {len(codecs)} codecs"): lambda: _sweep(made, results, codecs, tiles),
        (by_hand := "the same, each cell decoded and scored"): lambda: _flat(made, results, codecs, asked),
    }
    with progress("sweep; the first round compiles", total=1, done=0) as advance:
        ours, flat = works[every](), works[by_hand]()
        apart = max(float(np.abs(a - b).max()) for a, b in zip(ours, flat, strict=True))
        if not apart < TOLERANCE:
            raise PruneBoardError(f"the flat way scores otherwise, by {apart:.2g}, so times mean nothing")
        times = _in_turns(works, rounds=3)
        advance(1)
    full = next(iter(times.values()))
    return [
        {"way": way, "seconds": round(spent / 1000, 3), "ratio": round(spent / full, 2), "cells": cells}
        for way, spent in times.items()
    ]


def _page(n: int, dim: int, seed: int) -> Page:
    return synthetic_page(n // 32, 32, dim=dim, layers=18, seed=seed)


def _in_turns(works: dict[str, Work], rounds: int = ROUNDS) -> dict[str, float]:
    """Median CPU milliseconds of each, one after another in every round; the first is not counted."""
    taken: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds + 1):
        for name, work in works.items():
            start = time.process_time()
            work()
            taken[name].append(time.process_time() - start)
    return {name: 1000 * statistics.median(times[1:]) for name, times in taken.items()}


def _pruned(pages: Sequence[Page]) -> list[list[Any]]:
    """What every built-in method that stores no codes of its own, and sees no query, makes of each page."""
    left_out = ("adaptive", "merge", "full", "hpc", "oracle")
    methods = [m.with_window(Window(11, 15)) for m in resolve([name for name in catalogue() if name not in left_out])]
    ready = [calibrate(method, pages, STANDARD) for method in methods]
    return [[prune(method, page, STANDARD) for method in ready] for page in pages]


def _sweep(
    pages: Sequence[Page], results: Sequence[Sequence[Any]], codecs: Sequence[Codec], tiles: QueryTiles
) -> list[np.ndarray]:
    """As an evaluation does: a page is decoded once for all subsets, merged vectors one by one."""
    from harness.evaluation.scores import held_as

    scores = []
    for page, made in zip(pages, results, strict=True):
        for codec in codecs:
            plain = codec == FLOAT16
            vectors = page.vectors if plain else codec.stored(page.vectors)
            scores.append(score_page(vectors, made if plain else [held_as(one, codec) for one in made], tiles)[1:])
    return scores


def _flat(
    pages: Sequence[Page], results: Sequence[Sequence[Any]], codecs: Sequence[Codec], asked: Sequence[torch.Tensor]
) -> list[np.ndarray]:
    """What one would write by hand: for each cell decode its vectors, a product, a maximum."""
    tokens, shape = torch.cat(list(asked)).T.contiguous(), (len(asked), len(asked[0]))
    scores = []
    for page, made in zip(pages, results, strict=True):
        for codec in codecs:
            cells = []
            for result in made:
                for b in range(len(STANDARD)):
                    kept = page.vectors[result.kept(b)] if isinstance(result, Subset) else result.vectors[b]
                    vectors = kept if codec == FLOAT16 else codec.stored(kept)
                    cells.append((vectors @ tokens).amax(0).view(shape).sum(1).numpy())
            scores.append(np.stack(cells))
    return scores


def _faiss(codec: Codec, page: np.ndarray, learned: np.ndarray) -> dict[str, Work]:
    """The codec of faiss that stores as much: trained on the same, encoding and decoding the same page."""
    try:
        import faiss
    except ImportError as error:
        raise PruneBoardError("faiss is compared with: pip install faiss-cpu, or 'pruneboard[test]'") from error
    faiss.omp_set_num_threads(1)
    dim = page.shape[1]
    theirs: Any
    if codec.name == "pq":
        theirs = faiss.ProductQuantizer(dim, codec.parameters()["parts"], 8)
        faiss.copy_array_to_vector(codec.shared(dim)["codebooks"].astype(np.float32).ravel(), theirs.centroids)
        if theirs.compute_codes(page).tobytes() != codec.pack(page):
            raise PruneBoardError("faiss finds other product codes with the same codebooks, so times mean nothing")
    elif codec.name in ("int8", "int4"):
        kind = faiss.ScalarQuantizer.QT_8bit if codec.name == "int8" else faiss.ScalarQuantizer.QT_4bit
        theirs = faiss.ScalarQuantizer(dim, kind)
        theirs.train(learned)
    elif codec.name == "binary":
        if np.packbits(np.unpackbits(_faiss_signs(page), bitorder="little")).tobytes() != codec.pack(page):
            raise PruneBoardError("faiss finds other sign bits, so times mean nothing")
        return {"faiss_encode_ms": lambda: _faiss_signs(page)}
    else:
        return {}
    codes = theirs.compute_codes(page)
    if codec.name == "pq" and not np.allclose(theirs.decode(codes), codec.unpack(codec.pack(page), dim), atol=1e-5):
        raise PruneBoardError("faiss decodes the same product codes otherwise, so times mean nothing")
    return {"faiss_encode_ms": lambda: theirs.compute_codes(page), "faiss_decode_ms": lambda: theirs.decode(codes)}


def _faiss_signs(page: np.ndarray) -> np.ndarray:
    """The same bits as `binary`'s, but the first in a byte's lowest."""
    import faiss

    bits = np.empty((len(page), page.shape[1] // 8), np.uint8)
    faiss.real_to_binary(page.size, faiss.swig_ptr(page), faiss.swig_ptr(bits))
    return bits
