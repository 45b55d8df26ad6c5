"""Forged and malformed JSON: one thing spoiled at a time, and each is named."""

from collections.abc import Callable

import pytest
from spoiling import Spoiled, cell

from harness.submissions.validation import validate


def data_set(**changes: object) -> Callable[[dict], None]:
    return lambda s: s["benchmark"]["data_sets"][0].update(changes)


def without(key: str) -> Callable[[dict], None]:
    return lambda s: s.pop(key)


SPOILED_JSON = {
    "a score": (
        lambda s: s["cells"][1]["ndcg"].update({"5": 0.999}),
        "cells[1] (plain at 0.1).ndcg.5",
        "rankings give",
    ),
    "a deep score": (lambda s: s["cells"][1]["ndcg"].update({"50": 0.999}), "cells[1] (plain at 0.1).ndcg.50", "give"),
    "a score left out": (lambda s: s["cells"][1]["ndcg"].pop("10"), "cells[1] (plain at 0.1).ndcg.10", "is None"),
    "a realised budget": (cell(realised=0.05), "cells[1] (plain at 0.1).realised", "the kept vectors give"),
    "vectors a page": (cell(vectors_per_page=1.0), "cells[1] (plain at 0.1).vectors_per_page", "kept vectors give"),
    "score retention": (cell(score_retention=0.99), "cells[1] (plain at 0.1).score_retention", "its queries give"),
    "a deviation": (cell(trial_deviation=0.3), "cells[1] (plain at 0.1).trial_deviation", "its trials give"),
    "trials": (
        lambda s: [c.update(trials=5) for c in s["cells"] if c["budget"] < 1],
        "per_query (plain)",
        "trials at 0.1 are [0], the cells say 5",
    ),
    "other code": (cell(code="sha256-" + 64 * "0"), "cells[1] (plain at 0.1).code", "other code than method.code"),
    "a version": (lambda s: s["method"].update(version="9.9"), "method.version", "is 9.9, but"),
    "a content hash": (data_set(qrels="sha256-" + 64 * "0"), "benchmark.data_sets (plain).qrels", "is pinned"),
    "a count of pages": (data_set(pages=24), "benchmark.data_sets (plain).pages", "24 was read, 25 is pinned"),
    "no content hash": (lambda s: s["benchmark"]["data_sets"][0].pop("corpus"), "(plain)", "corpus missing"),
    "no hash of texts": (lambda s: s["backbone"].update(kind="text tokens"), "(plain)", "page_texts missing"),
    "no environment": (without("environment"), "environment", "is missing"),
    "no table": (without("per_query"), "per_query", "measured figures come with their tables"),
    "no full model": (lambda s: s["cells"].pop(0), "cells (plain)", "no cell of the full model"),
    "a cell twice": (lambda s: s["cells"].append(s["cells"][1]), "cells (plain  at 0.1)", "occurs 2 times"),
    "a data set unknown": (cell(data_set="other"), "cells (other)", "is no data set of pages"),
    "a language unknown": (cell(language="dutch"), "cells (plain)", "no queries in dutch"),
    "a missing reproduction": (lambda s: s.update(claim="reproduced", reproduces="0" * 16), "reproduces", "no valid"),
    "a reproduction of nothing": (lambda s: s.update(claim="reproduced"), "reproduces", "goes with the claim"),
    "rankings of a paper": (lambda s: s.update(claim="reported"), "per_query", "figures of a paper have no tables"),
}


@pytest.mark.parametrize("what", SPOILED_JSON)
def test_a_forged_submission_is_found_out(spoiled: Spoiled, what: str) -> None:
    """The forger even gives it the id that belongs to its content."""
    change, field, said = SPOILED_JSON[what]
    spoiled.only("sap")
    spoiled.json("sap", change, forge_id=True)
    errors = spoiled.errors()
    assert any(field in error.field and said in error.what for error in errors), errors
    assert validate(spoiled.root).entries == ()


SPOILED_FORM = {
    "a string for a number": (cell(realised="0.1"), "cells.1.realised", "valid number"),
    "a boolean for a number": (cell(budget=True), "cells.1.budget", "valid number"),
    "a score above 1": (lambda s: s["cells"][1]["ndcg"].update({"5": 1.2}), "cells.1.ndcg.5", "less than or equal"),
    "a negative size": (cell(bytes_per_page=-1), "cells.1.bytes_per_page", "greater than or equal to 0"),
    "an unknown field": (lambda s: s.update(rank=1), "rank", "not permitted"),
    "a missing field": (without("method"), "method", "required"),
    "an average": (lambda s: s.update(average={"5": 0.9}), "average", "not permitted"),
    "a name that is a path": (lambda s: s["method"].update(name="../../x"), "method.name", "match pattern"),
    "an id that is a path": (lambda s: s.update(id="../x"), "id", "match pattern"),
    "a link that runs": (lambda s: s["origin"].update(paper="javascript:alert(1)"), "origin.paper", "match pattern"),
    "a link with markup": (lambda s: s["origin"].update(code='https://x/"><script>'), "origin.code", "match pattern"),
    "a novel": (lambda s: s["origin"].update(note="x" * 10_000), "origin.note", "at most 2000"),
    "terminal codes": (lambda s: s["origin"].update(submitter="\x1b[31mred"), "origin.submitter", "match pattern"),
    "a track of one's own": (lambda s: s["method"].update(track="best"), "method.track", "input should be"),
    "another format": (lambda s: s.update(format=2), "format", "input should be 1"),
    "no date": (lambda s: s["origin"].update(submitted="yesterday"), "origin.submitted", "date"),
    "a cutoff of one's own": (lambda s: s["cells"][1]["ndcg"].update({"3": 0.5}), "cells.1.ndcg.3", "input should be"),
}


@pytest.mark.parametrize("what", SPOILED_FORM)
def test_what_is_not_of_the_schema_is_named_by_its_field(spoiled: Spoiled, what: str) -> None:
    change, field, said = SPOILED_FORM[what]
    spoiled.only("sap")
    spoiled.json("sap", change)
    errors = spoiled.errors()
    assert any(error.field.startswith(field) and said in error.what for error in errors), errors
    assert not any("\x1b" in error.what + error.field for error in errors)


SPOILED_TEXT = {
    "NaN": (lambda t: t.replace('"realised": 1.0', '"realised": NaN', 1), "NaN is no number"),
    "infinity": (lambda t: t.replace('"realised": 1.0', '"realised": -Infinity', 1), "-Infinity is no number"),
    "a key twice": (lambda t: t.replace('"format": 1', '"format": 1, "format": 1', 1), "'format' occurs twice"),
    "no JSON": (lambda t: t[:-20], "no valid JSON"),
    "a deep nest": (lambda t: t.replace('"format": 1', '"format": ' + "[" * 100_000, 1), "no valid JSON"),
    "too much": (lambda t: t + " " * 5_000_000, "more than 4 MB"),
    "nothing": (lambda t: "", "no valid JSON"),
    "a list": (lambda t: "[]", "input should be an object"),
    "half a character": (lambda t: t.replace('"the toy team"', '"\\ud800"'), "JSON"),
}


@pytest.mark.parametrize("what", SPOILED_TEXT)
def test_what_is_no_clean_json_is_said_and_does_not_stop_the_others(spoiled: Spoiled, what: str) -> None:
    change, said = SPOILED_TEXT[what]
    spoiled.only("sap", "row_pool")
    path = spoiled.path("sap")
    path.write_text(change(path.read_text()))
    report = validate(spoiled.root)
    errors = [problem for problem in report.problems if problem.level == "error"]
    assert errors
    assert {error.file for error in errors} == {path}
    assert any(said in error.what for error in errors), errors
    assert [entry.submission.method.name for entry in report.entries] == ["row_pool"]
