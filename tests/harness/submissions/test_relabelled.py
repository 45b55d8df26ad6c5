"""What is called other than it is: diagnostics, copies in another's name, figures typed in, tables that lie."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spoiling import Spoiled
from test_forgeries import as_reproduction, copy_as

from harness import parquet
from harness.evaluation.evaluate import Evaluation
from harness.files import checksum
from harness.submissions.judgements import pair_mean_bounds
from harness.submissions.run_facts import FinishedRun, method_facts
from harness.submissions.schema import Track
from harness.submissions.tables import KEPT, PER_QUERY, per_query_path
from harness.submissions.validation import ChangeBy, validate
from pruners import PruneBoardError

PEEKING = """
from pruners import diagnostic


@diagnostic("contrast")
def contrast(page, queries):
    return page.vectors[:, 0]
"""


def said(spoiled: Spoiled, path: Path) -> str:
    return "; ".join(f"{e.field}: {e.what}" for e in spoiled.errors() if e.file == path)


def test_a_diagnostic_of_a_file_is_called_one(spoiled: Spoiled) -> None:
    """Its source is read, and not run."""
    path = spoiled.json("contrast", lambda s: s["method"].update(source={"own.py": PEEKING}), forge_id=True)
    assert "contrast is a diagnostic by its source" in said(spoiled, path)


def test_only_trained_may_be_said_of_a_method_that_declares_otherwise(evaluation: Evaluation) -> None:
    run = FinishedRun(evaluation.run.folder)
    assert method_facts(run, "sap", Track.trained).track is Track.trained
    with pytest.raises(PruneBoardError, match="sap is of the track query-agnostic subset, by its own declaration"):
        method_facts(run, "sap", Track.merging)
    run.methods["sap"]["diagnostic"] = True
    with pytest.raises(PruneBoardError, match="sap is of the track diagnostic"):
        method_facts(run, "sap", Track.trained)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda m: m.update(track="merging"), "it is called merging, and what ran is of the track query-agnostic"),
        (lambda m: m.update(snapped=True), "its snapped is said to be True, and what ran has False"),
        (lambda m: m.update(composition="contrast(well=1)"), "its composition is said to be"),
        (lambda m: m.update(parameters={"alpha": 3}), "its parameters is said to be {'alpha': 3}"),
    ],
)
def test_a_method_that_is_not_what_it_says_is_not_verified(
    spoiled: Spoiled,
    reproduce,
    change: Callable[[dict], None],
    says: str,
) -> None:
    path = spoiled.json("contrast", lambda s: change(s["method"]), forge_id=True)
    code, told = reproduce(spoiled.root, path.stem)
    assert code == 1
    assert says in told


def _higher_score_retention(content: dict) -> None:
    for cell in content["cells"]:
        if cell["budget"] < 1:
            cell["score_retention"] = min(1.0, cell["score_retention"] + 0.05)


def _all_with_a_pair_left_out(content: dict) -> None:
    for cell in content["cells"]:
        cell["pairs_left_out"] = 1
    _higher_score_retention(content)


def test_score_retention_cannot_be_typed_in_by_leaving_pairs_out(spoiled: Spoiled) -> None:
    path = spoiled.json("sap", _all_with_a_pair_left_out, forge_id=True)
    assert "its queries give" in said(spoiled, path)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_higher_score_retention, "the score_retention submitted is"),
        (lambda s: [c.update(pairs_left_out=1) for c in s["cells"]], "the pairs_left_out submitted is 1, measured is"),
        (lambda s: s["cells"][1].update(score_retention_micro=0.999), "the score_retention_micro submitted is 0.999"),
        (lambda s: s["cells"].append({**s["cells"][0], "language": "latin"}), "there is no such cell in latin"),
    ],
)
def test_what_is_declared_of_a_cell_is_measured_again(
    spoiled: Spoiled,
    reproduce,
    change: Callable[[dict], None],
    says: str,
) -> None:
    path = spoiled.json("sap", change, forge_id=True)
    code, told = reproduce(spoiled.root, path.stem)
    assert code == 1
    assert says in told


def test_one_that_cannot_be_run_or_read_does_not_stop_the_others(
    spoiled: Spoiled,
    reproduce,
) -> None:
    spoiled.only("sap", "random", "row_pool", "contrast")
    spoiled.json("sap", lambda s: s["method"].update(expression="sap((("), forge_id=True)
    spoiled.path("row_pool").write_text("{")
    junk = spoiled.path("contrast")
    junk.with_suffix(".parquet").write_bytes(b"junk")
    code, told = reproduce(spoiled.root, "--all")
    assert code == 1
    assert f"not run {spoiled.path('sap').stem} sap: " in told
    assert f"not run {spoiled.path('row_pool').stem} row_pool: " in told
    assert f"differs {junk.stem} contrast: {junk.with_suffix('.parquet').name} is no parquet file" in told
    assert f"verified {spoiled.path('random').stem}" in told
    with pytest.raises(PruneBoardError, match="is no folder of submissions"):
        reproduce(spoiled.root / "nowhere", "--all")


def test_bounds_of_a_mean_from_which_pairs_are_left_out() -> None:
    """By hand: values .2, .8 and .5 of queries with 1, 3 and 2 pairs, one of which is gone, whichever it was."""
    import numpy as np

    values, pairs = np.array([0.2, 0.8, 0.5]), np.array([1, 3, 2])
    low, high = pair_mean_bounds(values, pairs, 1)
    assert low == pytest.approx((0.2 + 2 * 0.8 + 2 * 0.5) / 5)
    assert high == pytest.approx((0.2 + 3 * 0.8 + 0.5) / 5)
    lost = pair_mean_bounds(np.array([np.nan, 0.8, 0.5]), pairs, 1)  # all that is left out is the first query's
    assert lost == pytest.approx(((3 * 0.8 + 2 * 0.5) / 5,) * 2)
    alone = pair_mean_bounds(np.array([0.2, 0.8]), np.array([1, 1]), 1)  # each has kept its only pair
    assert alone == pytest.approx((0.5, 0.5))


def test_a_copy_in_another_packing_is_a_copy(spoiled: Spoiled) -> None:
    original = spoiled.path("sap").stem
    path = copy_as(spoiled, "sap", as_reproduction(original))
    table = per_query_path(path)
    packed = io.BytesIO()
    pq.write_table(pq.read_table(table).take(pa.array(range(table_rows(table)))[::-1]), packed, compression="snappy")
    table.write_bytes(packed.getvalue())
    content = json.loads(path.read_text()) | {"per_query": checksum(packed.getvalue())}
    path.write_text(json.dumps(content))
    path = spoiled._forge(path)
    assert f"its rows are those of {original}" in said(spoiled, path)


def table_rows(path: Path) -> int:
    return pq.read_metadata(path).num_rows


def test_where_nothing_tells_who_was_first_both_are_told(spoiled: Spoiled) -> None:
    path = copy_as(spoiled, "sap", lambda s: s["origin"].update(submitter="another team"), "sap2")
    path = spoiled.json("sap2", lambda s: s["method"].update(name="sap2", track="trained"), forge_id=True)
    assert "its rows are those of" in said(spoiled, path)
    assert f"its rows are those of {path.stem}" in said(spoiled, spoiled.path("sap"))


def test_nobody_submits_in_anothers_name(spoiled: Spoiled, tmp_path: Path) -> None:
    base = Path(shutil.copytree(spoiled.root, tmp_path / "base"))
    path = spoiled.json("sap", lambda s: s["origin"].update(note="mine"))
    name = path.with_stem("0" * 16)
    for ending in (".json", ".parquet", ".kept.parquet"):
        shutil.copy(path.with_suffix(ending), name.with_suffix(ending))
    report = validate(spoiled.root, base=base, by=ChangeBy("eve"))
    assert any("the toy team has submitted before, and not by the account eve" in p.what for p in report.problems)
    report = validate(spoiled.root, base=base, by=ChangeBy("eve", maintainer=True))
    assert not any("has submitted before" in p.what for p in report.problems)


def test_a_date_before_there_was_anything_to_submit(spoiled: Spoiled) -> None:
    path = spoiled.json("sap", lambda s: s["origin"].update(submitted="0001-01-01"))
    assert "0001-01-01 is before 2024-06-27" in said(spoiled, path)


def test_printed_figures_have_a_link_and_a_limit(spoiled: Spoiled) -> None:
    def print_it(content: dict) -> None:
        content["claim"] = "reported"
        content["origin"].update(note="trust me")
        content["cells"] = [{"data_set": "plain", "budget": 0.1, "ndcg": {}, "retention": 999}]

    path = spoiled.json("sap", print_it, forge_id=True)
    told = said(spoiled, path)
    assert "names no source" in told
    assert "is 999: nothing that is pruned finds so much more" in told


def _varint(number: int) -> bytes:
    found = b""
    while number > 127:
        found, number = found + bytes([number & 127 | 128]), number >> 7
    return found + bytes([number])


@pytest.mark.slow
def test_a_table_whose_footer_lies_about_its_size_is_not_unpacked(tmp_path: Path) -> None:
    """One long text, and a footer that says a hundred bytes; read by a process that has no memory to spare yet."""
    text = "a" * (64 * 2**20)
    columns = {"data_set": [text], "budget": [1.0], "trial": [0], "kept": [[1]]}
    table = pa.table({name: pa.array(values, parquet.KINDS[KEPT[name]]) for name, values in columns.items()})
    packed = io.BytesIO()
    pq.write_table(table, packed, compression="zstd", store_schema=False, dictionary_pagesize_limit=2**30)
    data = bytearray(packed.getvalue())
    group = pq.read_metadata(io.BytesIO(data)).row_group(0)
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    for size in {group.total_byte_size, group.column(0).total_uncompressed_size}:
        true = _varint(2 * size)
        lie = bytes([200 & 127 | 128, 200 >> 7 | 128, *([128] * (len(true) - 3)), 0])
        data = data[:footer] + data[footer:].replace(true, lie)
    path = tmp_path / "bomb.parquet"
    path.write_bytes(data)
    assert pq.read_metadata(path).row_group(0).total_byte_size < 1000
    program = (
        "import sys; from pathlib import Path; from harness import parquet\n"
        "from harness.submissions.tables import KEPT\n"
        "parquet.MAX_MEMORY = 48 * 2**20\n"
        "try: parquet.read(Path(sys.argv[1]), KEPT)\n"
        "except parquet.TableError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    assert "unpacks to more than 48 MB, whatever it says" in done.stdout


def test_rankings_without_end_are_not_read(tmp_path: Path) -> None:
    row = {name: [""] for name in PER_QUERY} | {name: [0.0] for name, kind in PER_QUERY.items() if kind != "text"}
    frame = pd.DataFrame({**row, "trial": [0], "top_10": [["p"] * 17]})
    path = tmp_path / "long.parquet"
    path.write_bytes(parquet.pack({name: frame[name].tolist() for name in PER_QUERY}, PER_QUERY))
    with pytest.raises(parquet.TableError, match="17 texts in 1 rows; at most 16 in each"):
        parquet.read(path, PER_QUERY)
