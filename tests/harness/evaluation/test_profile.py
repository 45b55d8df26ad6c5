"""Profile `native`: prompt vectors are indexed too, are never pruned, and count in vectors and bytes."""

from pathlib import Path

import numpy as np
import pytest
from toy import BACKBONE

from harness.evaluation.config import Config
from harness.evaluation.evaluate import RunPaths, evaluate
from harness.progress import quiet
from harness.store.reader import Store
from pruners import Merged, parse, prune
from pruners.core.errors import PruneBoardError

PRUNERS = ("eos", "kmeans", "hpc")
WITHOUT = "return EncodedPage(torch.from_numpy(vectors).float(), (4, len(vectors) // 4), signals)"
WITH = WITHOUT.replace("signals)", "signals, torch.from_numpy(rng.standard_normal((2, 16)) / 4).float())")


@pytest.fixture(scope="module")
def prompted(toy, tmp_path_factory: pytest.TempPathFactory) -> dict:
    folder = tmp_path_factory.mktemp("prompted")
    assert WITHOUT in BACKBONE
    (folder / "prompted.py").write_text(BACKBONE.replace(WITHOUT, WITH).replace('"toy"', '"prompted"'))
    config = Config(
        backbone=str(folder / "prompted.py"),
        benchmark=f"{toy.benchmark}/plain",
        calibration=toy.calibration,
        pruners=PRUNERS,
        budgets=(0.1, 0.3),
    )
    places = {p: RunPaths(folder / "stores", folder / p, 1) for p in ("visual", "native")}
    rows = {p: evaluate(Config(**{**vars(config), "profile": p}), places[p], quiet).rows for p in ("visual", "native")}
    stores = {s.manifest.identity["benchmark"]["name"]: s for s in map(Store, (folder / "stores").iterdir())}
    return {"rows": rows, "store": stores["plain"], "native": folder / "native"}


@pytest.mark.slow
def test_prompt_vectors_take_part_in_every_maximum(prompted: dict) -> None:
    store, ranked = prompted["store"], []
    for q in range(len(store.query_ids)):
        scores = []
        for index in range(len(store)):
            page = store.page(index)
            kept = prune(parse("eos"), page, [0.1]).kept(0)
            indexed = np.concatenate([page.vectors.numpy()[kept], store.prompt(index).numpy()]).astype(np.float64)
            scores.append((store.query(q).numpy().astype(np.float64) @ indexed.T).max(1).sum())
        rank = sum(score > scores[q % len(store)] for score in scores)
        ranked.append(1 / np.log2(rank + 2) if rank < 5 else 0)
    (row,) = [row for row in prompted["rows"]["native"] if row["method"] == "eos" and row["budget"] == 0.1]
    assert row["ndcg@5"] == pytest.approx(np.mean(ranked), abs=1e-6)


def test_they_count_in_vectors_and_bytes_but_not_in_the_budget(prompted: dict) -> None:
    for visual, native in zip(*(sorted(prompted["rows"][p], key=_cell) for p in ("visual", "native")), strict=True):
        assert native["vectors_per_page"] == pytest.approx(visual["vectors_per_page"] + 2)
        assert native["bytes_per_page"] == pytest.approx(visual["bytes_per_page"] + 2 * 16 * 2)
        assert native["realised"] == pytest.approx(visual["realised"])


def test_merged_vectors_are_kept_beside_the_prompt(prompted: dict) -> None:
    page = prompted["store"].page(0)
    assert isinstance(prune(parse("kmeans"), page, [0.1]), Merged)
    rows = {p: [r for r in prompted["rows"][p] if r["method"] == "kmeans"] for p in ("visual", "native")}
    assert rows["visual"][0]["score_retention"] != rows["native"][0]["score_retention"]


def test_a_retriever_without_prompt_vectors_is_refused_by_name(toy, tmp_path: Path) -> None:
    config = Config(
        backbone=toy.backbone, benchmark=toy.benchmark, calibration=toy.calibration, pruners=("eos",), profile="native"
    )
    with pytest.raises(PruneBoardError, match=r"toy_backbone\.py gives no prompt vectors"):
        evaluate(config, RunPaths(toy.folder / "stores", tmp_path, 1), quiet)
    with pytest.raises(PruneBoardError, match="there is no index profile 'whole'"):
        Config(profile="whole")  # type: ignore[arg-type]


def _cell(row: dict) -> tuple[str, float]:
    return row["method"], row["budget"]
