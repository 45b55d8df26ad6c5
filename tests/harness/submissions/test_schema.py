"""The schema: every field documented, exported as it is, strict about what it takes."""

import hashlib
import importlib.util
import json
from datetime import date
from pathlib import Path
from types import ModuleType

import pytest
from pydantic import ValidationError

from harness.submissions.folder import FOLDER, submission_path, to_json
from harness.submissions.problems import printable
from harness.submissions.run_facts import expression_of
from harness.submissions.schema import (
    MEASURED,
    BackboneFacts,
    BenchmarkFacts,
    Cell,
    DataSetFacts,
    MethodFacts,
    Origin,
    Submission,
    Track,
    content_id,
    with_id,
)
from pruners.core.errors import PruneBoardError

SCRIPT = Path(__file__).parents[3] / "scripts" / "export_schema.py"


@pytest.fixture(scope="module")
def export() -> ModuleType:
    spec = importlib.util.spec_from_file_location("export_schema", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def submission(**changes: object) -> Submission:
    cells = (Cell(data_set="d", budget=1.0, ndcg={"5": 0.9}), Cell(data_set="d", budget=0.1, ndcg={"5": 0.8}))
    fields = {
        "format": 1,
        "id": "x",
        "claim": "reported",
        "origin": Origin(submitter="we", submitted=date(2026, 11, 16)),
        "benchmark": BenchmarkFacts(name="b", data_sets=(DataSetFacts(name="d"),)),
        "backbone": BackboneFacts(name="nano", checkpoint="embedded"),
        "method": MethodFacts(name="sap", expression="sap", title="SAP", track=Track.subset),
        "cells": cells,
    }
    return Submission(**{**fields, **changes})


def test_every_field_has_a_meaning(export: ModuleType) -> None:
    schema = json.loads(export.json_schema())
    parts = {"Submission": schema, **schema["$defs"]}
    without = [
        f"{name}.{field}"
        for name, part in parts.items()
        for field, about in part.get("properties", {}).items()
        if not about.get("description")
    ]
    assert without == []
    assert all(part.get("additionalProperties") is False for part in parts.values() if "properties" in part)


def test_the_exported_schema_and_the_docs_are_those_of_the_code(export: ModuleType) -> None:
    """If this fails: python scripts/export_schema.py"""
    assert (FOLDER / "schema.json").read_bytes() == export.json_schema()
    text = export.DOCS.read_text()
    assert export.with_field_tables(text) == text
    for name in Submission.model_fields:
        assert f"| `{name}`" in export.field_tables()


def test_the_id_follows_what_was_measured_and_nothing_else() -> None:
    base = submission()
    known = {content_id(base)}
    for change in (
        {"cells": (*base.cells, Cell(data_set="d", budget=0.2, ndcg={"5": 0.8}))},
        {"cells": (base.cells[0], base.cells[1].model_copy(update={"ndcg": {"5": 0.8000001}}))},
        {"claim": "self-reported"},
        {"method": base.method.model_copy(update={"track": Track.trained})},
        {"backbone": base.backbone.model_copy(update={"revision": "abc"})},
        {"per_query": "xxh3-" + 32 * "0"},
        {"kept": "xxh3-" + 32 * "0"},
        {"reproduces": "abc"},
    ):
        known.add(content_id(base.model_copy(update=change)))
    assert len(known) == 9
    other = Origin(submitter="another", submitted=date(2027, 1, 1), note="a remark")
    assert content_id(base.model_copy(update={"origin": other, "id": "y"})) == content_id(base)
    assert set(MEASURED) | {"id", "origin", "environment"} == set(Submission.model_fields)
    assert submission_path(with_id(base)) == Path("b/nano/sap") / f"{content_id(base)}.json"


def test_an_id_survives_being_written_and_read() -> None:
    made = with_id(
        submission(
            method=MethodFacts(name="a", expression="a", title="é 漢", track=Track.subset, parameters={"z": 1.0})
        )
    )
    again = Submission.model_validate_json(made.model_dump_json())
    assert content_id(again) == made.id


def test_the_id_is_a_hash_of_what_the_file_holds_so_a_new_optional_field_changes_no_old_id() -> None:
    made = submission()
    held = {name: value for name, value in json.loads(to_json(made)).items() if name in MEASURED}
    text = json.dumps(held, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert content_id(made) == hashlib.sha256(text.encode()).hexdigest()[:16]
    assert "null" not in text


@pytest.mark.parametrize(
    "name", ["..", ".", "", "a/b", "a\\b", "-x", "a\nb", "a b", "ä", "x" * 121, "a\x00", "_x", "a\u202e"]
)
def test_names_that_become_folders_cannot_lead_elsewhere(name: str) -> None:
    for make in (
        lambda: MethodFacts(name=name, expression="e", title="t", track=Track.subset),
        lambda: BackboneFacts(name=name, checkpoint="c"),
        lambda: BenchmarkFacts(name=name, data_sets=(DataSetFacts(name="d"),)),
        lambda: submission(id=name),
    ):
        with pytest.raises(ValidationError):
            make()


@pytest.mark.parametrize("text", ["mine.py:\uff4dine", "s\u0430p", "sap\x1b[2J", ""])
def test_a_method_is_named_in_plain_letters(text: str) -> None:
    """Python takes some letters for others, and so do people."""
    for named in ({"expression": text}, {"expression": "sap", "composition": text}):
        with pytest.raises(ValidationError):
            MethodFacts(name="sap", title="t", track=Track.subset, **named)


def test_a_run_of_a_file_with_other_letters_says_what_to_do() -> None:
    assert expression_of("mine.py", "mine") == "mine.py:mine"
    with pytest.raises(PruneBoardError, match="rename the file"):
        expression_of("mïne.py", "mine")


@pytest.mark.parametrize(
    "link", ["javascript:alert(1)", "data:text/html,x", "//x", "https://a b", 'https://x"y', "https://{{x}}"]
)
def test_links_are_links(link: str) -> None:
    with pytest.raises(ValidationError):
        Origin(submitter="x", submitted=date(2026, 1, 1), paper=link)


def test_text_for_terminals_has_no_control_or_reordering_marks() -> None:
    assert printable("a\x1b[31m\u202eb\nc") == "a\\u001b[31m\\u202eb\\u000ac"
    assert len(printable("x" * 500)) == 120
