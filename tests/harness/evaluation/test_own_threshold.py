"""Native thresholds: one cell at the ratio that comes out, and a fixed-ratio partner at that ratio."""

import json
from pathlib import Path

import numpy as np
import pytest
from toy import CRASHING

from harness.evaluation.config import Config
from harness.evaluation.evaluate import Evaluation, RunPaths, evaluate
from harness.progress import quiet
from harness.store.reader import Store
from pruners import PruneBoardError, keep_count

NATIVE, CLIPPED = "docpruner(z=0.5)", "docpruner(z=0.5, clip=true)"
MERGED = "prune_then_merge(z=0.5)"


def run(toy, out: Path, **settings) -> Evaluation:
    config = Config(
        **{"backbone": toy.backbone, "benchmark": toy.benchmark, "pruners": (NATIVE, CLIPPED, "random"), "trials": 2}
        | settings
    )
    return evaluate(config, RunPaths(toy.folder / "stores", out, 1), quiet)


@pytest.fixture(scope="module")
def found(toy, tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    return run(toy, tmp_path_factory.mktemp("native") / "run")


def cell(found: Evaluation, data_set: str, method: str) -> dict:
    (record,) = [
        record
        for path in (found.run.folder / "results" / data_set).glob("*.json")
        if (record := json.loads(path.read_text()))["method"] == method
    ]
    (entry,) = record["budgets"]
    return entry


def test_an_own_threshold_has_one_cell_and_a_partner_at_its_ratio_on_every_data_set(toy, found: Evaluation) -> None:
    assert found.failures == {}
    rows = [(row["method"], row["partner_of"]) for row in found.rows if "own_threshold" in row]
    assert rows == [(NATIVE, None), (f"eos @ {NATIVE}", NATIVE), (CLIPPED, None), (f"eos @ {CLIPPED}", CLIPPED)]
    stores = {s.manifest.identity["benchmark"]["name"]: s for s in map(Store, (toy.folder / "stores").iterdir())}
    ratios = set()
    for data_set in ("plain", "tongues"):
        kept = total = 0
        lengths = []
        for page in stores[data_set].pages():
            attention = page.signals["eos"][-1].double().numpy()
            kept += max(1, int((attention > attention.mean() + 0.5 * attention.std()).sum()))
            total += len(page)
            lengths.append(len(page))
        native, partner = cell(found, data_set, NATIVE), cell(found, data_set, f"eos @ {NATIVE}")
        assert native["budget"] == native["realised"] == pytest.approx(kept / total)
        assert partner["budget"] == native["budget"]
        assert partner["realised"] == pytest.approx(sum(keep_count(kept / total, n) for n in lengths) / total)
        ratios.add(native["budget"])
    assert len(ratios) == 2, "the two data sets have ratios of their own"


def test_the_row_of_a_partner_has_the_difference_on_the_same_queries(found: Evaluation) -> None:
    rows = {row["method"]: row for row in found.rows}
    native, partner = rows[NATIVE], rows[f"eos @ {NATIVE}"]
    value, low, high = partner["minus_partner"]
    assert value == pytest.approx(native["retention"] - partner["retention"])
    assert low <= value <= high
    assert native["minus_partner"] is None
    assert native["rank"] is None
    assert native["budget"] == pytest.approx(
        np.mean([cell(found, t, NATIVE)["realised"] for t in ("plain", "tongues")])
    )


def test_an_own_threshold_that_merges_has_a_partner_at_the_ratio_of_its_merged_vectors(toy, tmp_path: Path) -> None:
    """Of n patches above the threshold n // 2 vectors are made: these are what an index holds, and what counts."""
    found = run(toy, tmp_path / "run", pruners=(MERGED,))
    assert found.failures == {}
    assert [(row["method"], row["partner_of"]) for row in found.rows[1:]] == [
        (MERGED, None),
        (f"eos @ {MERGED}", MERGED),
    ]
    stores = {s.manifest.identity["benchmark"]["name"]: s for s in map(Store, (toy.folder / "stores").iterdir())}
    for data_set in ("plain", "tongues"):
        made, lengths = [], []
        for page in stores[data_set].pages():
            attention = page.signals["eos"][-1].double().numpy()
            above = int((attention > attention.mean() + 0.5 * attention.std()).sum())
            made.append(max(1, above // 2))
            lengths.append(len(page))
        native, partner = cell(found, data_set, MERGED), cell(found, data_set, f"eos @ {MERGED}")
        ratio = sum(made) / sum(lengths)
        assert native["budget"] == native["realised"] == pytest.approx(ratio)
        assert native["vectors_per_page"] == pytest.approx(sum(made) / len(made))
        assert partner["budget"] == native["budget"]
        assert partner["realised"] == pytest.approx(sum(keep_count(ratio, n) for n in lengths) / sum(lengths))


def test_other_methods_keep_their_budgets(found: Evaluation) -> None:
    assert [row["budget"] for row in found.rows if row["method"] == "random"] == [0.05, 0.1, 0.2]


def test_a_run_without_its_partners_gets_them_when_it_goes_on(toy, found: Evaluation, tmp_path: Path) -> None:
    first = run(toy, tmp_path / "run")
    for path in (tmp_path / "run" / "results").rglob("eos*"):
        path.unlink()
    again = run(toy, tmp_path / "run")
    assert (
        [r["retention"] for r in again.rows]
        == [r["retention"] for r in first.rows]
        == [r["retention"] for r in found.rows]
    )


def test_partners_can_be_named_and_must_keep_a_fixed_ratio(toy, tmp_path: Path) -> None:
    named = run(toy, tmp_path / "run", pruners=(NATIVE,), partners=("ink", "kmeans"))
    assert {row["method"] for row in named.rows[1:]} == {NATIVE, f"ink @ {NATIVE}", f"kmeans @ {NATIVE}"}
    with pytest.raises(PruneBoardError, match="a partner keeps a fixed ratio; docpruner is adaptive"):
        run(toy, tmp_path / "run-2", partners=("docpruner",))
    with pytest.raises(PruneBoardError, match="--partner belongs to methods with a threshold of their own"):
        run(toy, tmp_path / "run-3", pruners=("eos",), partners=("ink",))


def test_when_such_a_method_fails_its_partner_says_why_it_has_no_ratio(toy, tmp_path: Path) -> None:
    file = tmp_path / "crashing.py"
    file.write_text(CRASHING)
    result = run(toy, tmp_path / "run", pruners=(str(file), "adaptive(crashing, z=1)", "eos"), partners=("ink",))
    assert set(result.failures) == {"crashing", "adaptive(crashing, z=1.0)", "ink @ adaptive(crashing, z=1.0)"}
    assert "failed, so there is no ratio" in result.failures["ink @ adaptive(crashing, z=1.0)"]
    assert {row["method"] for row in result.rows} == {"full", "eos"}


OF_MY_OWN = '''
"""A method that is adaptive in its own way: it keeps what has more attention than a part of the page's highest."""
from dataclasses import dataclass

import numpy as np

from pruners import Pruner, Subset, Window, learned, pruner
from pruners.eos import eos


@pruner("peaks", output="subset", budget="adaptive", needs=("eos",))
@dataclass(frozen=True)
class Peaks(Pruner):
    """Keep patches with more than a part of the highest attention.

    Formula:
        keep a_{j} > t·max a
    """

    part: float | None = None
    layers: Window | None = None
    parts_by_budget: dict[float, float] | None = learned()

    @property
    def own_threshold(self):
        return self.part is not None

    @property
    def needs_calibration(self):
        return self.part is None

    @property
    def partner(self):
        return eos() if self.part is not None else None

    @property
    def learned_thresholds(self):
        return self.parts_by_budget or {}

    def _shares(self, page):
        attention = self.layers.mean(page.signals["eos"]).double().numpy()
        return attention / attention.max()

    def calibrate(self, pages, budgets):
        if self.part is not None:
            return self
        shares = np.concatenate([self._shares(page) for page in pages])
        found = np.quantile(shares, [1 - budget for budget in budgets])
        return self.replace(parts_by_budget=dict(zip(budgets, found.tolist())))

    def prune(self, page, budgets, context):
        shares = self._shares(page)
        limits = [self.part if self.part is not None else self.parts_by_budget[budget] for budget in budgets]
        return Subset(np.argsort(-shares, kind="stable"), tuple(max(1, int((shares > t).sum())) for t in limits))
'''


def test_a_users_method_that_is_adaptive_in_its_own_way_is_treated_as_docpruner_is(toy, tmp_path: Path) -> None:
    """The harness asks what it needs to know of a method; it knows no class and no field of it."""
    file = tmp_path / "peaks.py"
    file.write_text(OF_MY_OWN)
    pruners = (f"{file}:peaks(part=0.5)", f"{file}:peaks", "docpruner")
    found = run(toy, tmp_path / "run", pruners=pruners, budgets=(0.2,), window="0-1", calibration=toy.calibration)
    assert found.failures == {}
    native = "peaks(part=0.5)"
    rows = [(row["method"], row["partner_of"]) for row in found.rows if "own_threshold" in row]
    assert rows == [(native, None), (f"eos @ {native}", native)]
    own = cell(found, "plain", native)
    assert own["budget"] == own["realised"] == cell(found, "plain", f"eos @ {native}")["budget"]
    record = json.loads((found.run.folder / "calibration.json").read_text())
    assert list(record["thresholds"]) == ["peaks", "docpruner"], "the one whose threshold is given learned none"
    assert record["window"]["window"] == "0-1"
