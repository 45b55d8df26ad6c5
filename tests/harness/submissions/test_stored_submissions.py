"""Codecs from a run to submissions: what they store is said, its bytes follow from it, and forged ones are found."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from spoiling import Spoiled
from toy import write_backbone, write_data_set

import harness
from harness.runs.results import Results
from harness.submissions.folder import find_submissions, read_submission
from harness.submissions.schema import Submission, Track, content_id
from harness.submissions.validation import validate
from pruners.core.budget import UNPRUNED


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("coded")
    write_data_set(folder / "pages" / "plain", range(25))
    write_data_set(folder / "calibration", range(100, 140), queries=40)
    return harness.evaluate(
        ["first_k", "kmeans"],
        backbone=str(write_backbone(folder)),
        benchmark=str(folder / "pages"),
        calibration=str(folder / "calibration"),
        codecs="float16,int8,pca(2)",
        budgets=[0.1, 0.2],
        store=folder / "stores",
        out=folder / "run",
        workers=1,
    )


@pytest.fixture(scope="module")
def submitted(results: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("submitted")
    results.submit("the toy team", date="2026-11-16", out=folder)
    return folder


@pytest.fixture
def forged(submitted: Path, tmp_path: Path) -> Spoiled:
    return Spoiled(Path(shutil.copytree(submitted, tmp_path / "copy")))


def test_a_run_knows_how_each_method_is_stored(results: Results) -> None:
    codecs = {(row["pruner"], row["codec"]): row for row in results.rows}
    wanted = {(name, codec) for name in ("first_k", "kmeans", "full") for codec in ("float16", "int8", "pca(2)")}
    assert set(codecs) == wanted
    assert codecs["full", "int8"]["budget"] == UNPRUNED
    assert codecs["full", "int8"]["realised"] == 1.0
    table = results.table()
    assert list(table.columns)[:4] == ["budget", "rank", "method", "codec"]
    assert (results.folder / "results" / "plain" / "kmeans___int8.json").is_file()
    # ranks are among methods that one codec stores
    at = [(row["codec"], row["rank"]) for row in results.rows if row["budget"] == 0.1]
    assert {codec for codec, rank in at if rank == 1} == {"float16", "int8", "pca(2)"}


def test_a_codec_comes_back_as_it_learned(results: Results) -> None:
    codec = harness.load_run(results.folder).codec("kmeans | pca(2)")
    page = np.random.default_rng(0).standard_normal((5, 16)).astype(np.float32)
    facts = results._run.methods["kmeans | pca(2)"]
    assert facts["codec"]["shared_bytes"] == sum(array.nbytes for array in codec.shared(16).values())
    assert codec.unpack(codec.pack(page), 16).shape == (5, 2)
    assert str(results.method("kmeans | pca(2)")) == "kmeans"
    assert harness.load_run(results.folder).rows == results.rows


def test_submissions_say_what_stores_them_and_are_valid(submitted: Path) -> None:
    report = validate(submitted)
    assert not [problem for problem in report.problems if problem.level == "error"]
    found = {s.method.name: s for s in map(read_submission, find_submissions(submitted))}
    assert found["kmeans"].codec is None
    assert found["kmeans"].method.track is Track.merging
    stored = found["kmeans--int8"]
    assert stored.codec is not None
    assert (stored.codec.expression, stored.codec.bytes_per_vector) == ("int8", 18)
    assert stored.method.expression == "kmeans | int8"
    assert stored.method.track is Track.quantised
    assert "full--int8" in found


def test_without_a_codec_the_id_is_what_it_was(submitted: Path) -> None:
    (path,) = (submitted / "pages" / "toy" / "kmeans").glob("*.json")
    content = json.loads(path.read_text())
    assert "codec" not in content
    assert content_id(Submission.model_validate_json(path.read_text())) == content["id"]


def errors(forged: Spoiled) -> list[str]:
    return [f"{p.field}: {p.what}" for p in validate(forged.root).problems if p.level == "error"]


def test_a_codebook_left_out_of_the_bytes_is_an_error(forged: Spoiled) -> None:
    (name,) = (p.name for p in (forged.root / "pages" / "toy").iterdir() if p.name.startswith("first_k--pca"))

    def leave_out(content: dict) -> None:
        for cell in content["cells"]:
            if cell["budget"] < 1:
                cell["bytes_per_page"] -= content["codec"]["shared_bytes"] / 25

    forged.json(name, leave_out, forge_id=True)
    assert any("bytes a page cannot hold its vectors: pca(2) needs" in error for error in errors(forged))


def _as_float16(content: dict) -> None:
    content.pop("codec")
    content["method"].update(track="query-agnostic subset")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda c: c["codec"].update(expression="binary"), "codec.bytes_per_vector: is 18, but binary takes 2"),
        (lambda c: c["codec"].update(expression="mine"), "mine is no codec of this project"),
        (lambda c: c["codec"].update(bytes_per_vector=9), "is 9, but int8 takes 18 for vectors of 16"),
        (lambda c: c["codec"].update(parameters={"n": 3}), "codec.parameters: are not those of int8"),
        (lambda c: c.pop("codec"), "first_k is of the track query-agnostic subset"),
        (_as_float16, "bytes a page cannot hold its vectors: float16 needs"),
        (lambda c: c["method"].update(track="query-agnostic subset"), "first_k stored by a codec is of the track"),
    ],
)
def test_another_codec_than_was_measured_is_an_error(forged: Spoiled, change: object, says: str) -> None:
    forged.json("first_k--int8", change, forge_id=True)  # type: ignore[arg-type]
    assert any(says in error for error in errors(forged)), errors(forged)
