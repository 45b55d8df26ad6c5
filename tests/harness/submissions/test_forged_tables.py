"""Forged and damaged tables: one thing spoiled at a time, and each is named."""

import random
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from spoiling import Spoiled

from harness.parquet import TableError
from harness.submissions.tables import read_per_query


def swap(frame: pd.DataFrame) -> None:
    """Let a wrong first page take the place of the second of query 0."""
    top = list(frame.at[0, "top_10"])
    frame.at[0, "top_10"] = [*top[1:], top[0]]


def set_row(column: str, value: object) -> Callable[[pd.DataFrame], None]:
    def change(frame: pd.DataFrame) -> None:
        frame.at[3, column] = value

    return change


SPOILED_ROWS = {
    "a ranking": (swap, "per_query (plain).ndcg@", "rows differ from their rankings"),
    "a page twice": (lambda f: set_row("top_10", [f.at[3, "top_10"][0]] * 10)(f), "top_10", "name a page twice"),
    "an unknown page": (lambda f: set_row("top_10", ["../x", *f.at[3, "top_10"][1:]])(f), "top_10", "has not"),
    "a short ranking": (lambda f: set_row("top_10", list(f.at[3, "top_10"][:9]))(f), "top_10", "do not have 10 pages"),
    "a long ranking": (lambda f: set_row("top_10", [*f.at[3, "top_10"], "page-0"])(f), "top_10", "do not have 10"),
    "a row's score": (set_row("ndcg@5", 0.123), "per_query (plain).ndcg@5", "0.12300 stored"),
    "NaN in a row": (set_row("ndcg@5", float("nan")), "per_query.ndcg@5", "1 rows are no number from 0 to 1"),
    "a score above 1": (set_row("ndcg@100", 1.5), "per_query.ndcg@100", "no number from 0 to 1"),
    "an impossible deep score": (set_row("ndcg@100", 0.0), "ndcg@100", "cannot be, given their first ten pages"),
    "an infinite retention": (set_row("score_retention", float("inf")), "score_retention", "infinite"),
    "a lost retention": (set_row("score_retention", None), ".score_retention", "its queries give nan"),
    "a row twice": (lambda f: pd.concat([f, f.iloc[[0]]]), "per_query (plain)", "1 queries have more than one row"),
    "a missing query": (lambda f: f.drop(index=3), "per_query (plain)", "19 of 20 queries at 0.1, trial 0"),
    "an unknown query": (set_row("query", "<b>q</b>"), "per_query (plain)", "<b>q</b> is not in qrels.parquet"),
    "another language": (set_row("language", "english"), "per_query (plain).language", "not the queries' language"),
    "an unknown data set": (set_row("data_set", "other"), "per_query", "other at 0.1: the rows have them"),
    "a budget of its own": (set_row("budget", 0.3), "per_query", "plain at 0.3: the rows have them"),
    "a missing language": (
        lambda f: f[f["language"] != "french"],
        "per_query (tongues)",
        "12 of 24 queries",
    ),
    "no row at all": (lambda f: f.iloc[:0], "per_query", "plain at 0.1: the cells have them"),
    "another trial": (set_row("trial", 7), "per_query (plain)", "trials at 0.1 are [0, 7]"),
}


@pytest.mark.parametrize("what", SPOILED_ROWS)
def test_a_forged_table_of_queries_is_found_out(spoiled: Spoiled, what: str) -> None:
    change, field, said = SPOILED_ROWS[what]
    spoiled.only("sap")
    spoiled.rows("sap", change)
    errors = spoiled.errors()
    assert any(field in error.field and said in error.what for error in errors), errors


def test_a_table_repacked_unchanged_passes(spoiled: Spoiled) -> None:
    """The control of the two tests around it: forging itself leaves no trace."""
    spoiled.rows("sap", lambda frame: None)
    spoiled.kept("random", lambda rows: None)
    spoiled.json("kmeans", lambda s: None, forge_id=True)
    assert spoiled.errors() == []


def keep(row: int, page: int, count: int) -> Callable[[list[dict]], None]:
    return lambda rows: rows[row]["kept"].__setitem__(page, count)


SPOILED_KEPT = {
    "a fixed budget missed": ("sap", keep(0, 4, 1), "kept (plain at 0.1)", "1 pages do not keep ⌈γN⌉ vectors"),
    "more than all": ("docpruner", keep(0, 4, 999), "kept (plain at 0.1)", "more than all"),
    "nothing kept": ("docpruner", keep(0, 4, 0), "kept (plain at 0.1)", "fewer than one"),
    "an adaptive count": ("docpruner", keep(0, 4, 9), "cells[1] (plain at 0.1).realised", "the kept vectors give"),
    "a page lost": (
        "docpruner",
        lambda rows: rows[0]["kept"].pop(),
        "kept (plain at 0.1)",
        "24 pages, the benchmark 25",
    ),
    "a row lost": ("sap", lambda rows: rows.pop(0), "kept", "plain at 0.1 is in the rows or in the cells only"),
    "no row at all": ("sap", lambda rows: rows.clear(), "kept", "plain at 0.1 is in the rows or in the cells only"),
    "an empty row": ("sap", lambda rows: rows[0]["kept"].clear(), "kept (plain at 0.1)", "has 0 pages"),
    "a trial lost": ("random", lambda rows: rows.pop(0), "kept (plain at 0.1)", "has 1 trials, the cells say 2"),
}


@pytest.mark.parametrize("what", SPOILED_KEPT)
def test_forged_counts_of_vectors_are_found_out(spoiled: Spoiled, what: str) -> None:
    method, change, field, said = SPOILED_KEPT[what]
    spoiled.only(method)
    spoiled.kept(method, change)
    errors = spoiled.errors()
    assert any(field in error.field and said in error.what for error in errors), errors


def test_a_table_with_the_same_rows_in_another_file_is_not_the_one_that_was_submitted(spoiled: Spoiled) -> None:
    """Only the checksum can tell: every figure is the same."""
    spoiled.only("sap")
    path = spoiled.path("sap").with_suffix(".parquet")
    pq.write_table(pq.read_table(path), path, compression="none", store_schema=False)
    (error,) = spoiled.errors()
    assert error.field == "per_query"
    assert "its checksum differs" in error.what


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + bytes(100) + b"PAR1", b"no parquet at all"])
def test_a_file_that_is_no_table_is_an_error_and_no_crash(spoiled: Spoiled, content: bytes) -> None:
    spoiled.path("sap").with_suffix(".parquet").write_bytes(content)
    errors = spoiled.errors()
    assert any(error.field == "per_query" and "parquet" in error.what for error in errors)


def test_a_table_with_any_damaged_byte_is_an_error_and_no_crash(submitted: Path, tmp_path: Path) -> None:
    """Bytes at random, most of them in the footer; whatever is still readable must have the form."""
    rng = random.Random(0)
    (source,) = (submitted / "pages" / "toy" / "sap").glob("*.json")
    whole = source.with_suffix(".parquet").read_bytes()
    damaged = tmp_path / "x.parquet"
    refused = 0
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(rng.choice([1, 3, 20])):
            data[rng.randrange(len(data) - 1500 if rng.random() < 0.7 else 0, len(data))] = rng.randrange(256)
        damaged.write_bytes(data)
        try:
            read_per_query(damaged.with_suffix(".json"))
        except TableError:
            refused += 1
    assert refused > 100


def test_a_table_of_another_form_is_refused_before_it_is_read(
    spoiled: Spoiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = spoiled.path("sap").with_suffix(".parquet")
    frame = pd.read_parquet(path)
    frame.assign(extra=1).to_parquet(path)
    assert any("they must be data_set, language" in error.what for error in spoiled.errors())
    frame.drop(columns="data_set").to_parquet(path)
    assert any("they must be data_set, language" in error.what for error in spoiled.errors())
    frame.assign(budget="0.1").to_parquet(path, store_schema=False)
    assert any("column budget is" in error.what for error in spoiled.errors())
    for name, limit in (("MAX_BYTES", 10), ("MAX_ROWS", 3), ("MAX_UNPACKED", 10)):
        with monkeypatch.context() as patch:
            patch.setattr(f"harness.parquet.{name}", limit)
            assert any("at most" in error.what for error in spoiled.errors())
