"""Write what is derived from the schema of submissions: `submissions/schema.json`, tables of docs/submissions.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness.files import write_atomically
from harness.submissions.folder import FOLDER
from harness.submissions.schema import Submission

DOCS = Path(__file__).parents[1] / "docs" / "submissions.md"
BEGIN, END = "<!-- fields: begin -->", "<!-- fields: end -->"
SCHEMA_ID = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> bytes:
    """JSON Schema of a submission, as `submissions/schema.json` holds it."""
    schema = {"$schema": SCHEMA_ID, "title": "A PruneBoard submission", **Submission.model_json_schema()}
    return (json.dumps(schema, indent=1, ensure_ascii=False, sort_keys=True) + "\n").encode()


def field_tables() -> str:
    """Every field with what it means, one table a part, in markdown."""
    schema = Submission.model_json_schema()
    parts: list[tuple[str, dict[str, Any]]] = [("Submission", schema)]
    parts += [(name, part) for name, part in schema["$defs"].items() if "properties" in part]
    return "\n".join(_table(name, part, schema["$defs"]) for name, part in parts)


def with_field_tables(text: str) -> str:
    """A document with the tables between its marks renewed."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n\n{field_tables()}\n{END}{tail}"


def _table(name: str, part: dict[str, Any], parts: dict[str, Any]) -> str:
    required = set(part.get("required", ()))
    rows = [
        f"| `{field}`{'' if field in required else ' *'} | {_kind(about, parts)} | {about['description']} |"
        for field, about in part["properties"].items()
    ]
    head = f"### {name}\n\n{' '.join(part.get('description', '').split())}\n"
    return "\n".join([head, "| field | is | meaning |", "| --- | --- | --- |", *rows, ""])


def _kind(about: dict[str, Any], parts: dict[str, Any]) -> str:
    """What a value may be, in a word or two."""
    if "$ref" in about:
        name = about["$ref"].rpartition("/")[2]
        return _choices(parts[name]["enum"]) if "enum" in parts[name] else f"[{name}](#{name.lower()})"
    if "enum" in about:
        return _choices(about["enum"])
    if "const" in about:
        return f"`{json.dumps(about['const'])}`"
    if "anyOf" in about:
        return " or ".join(dict.fromkeys(_kind(option, parts) for option in about["anyOf"]))
    if about.get("type") == "array":
        return f"list of {_kind(about['items'], parts)}" if "items" in about else "list"
    if about.get("type") == "object":
        return "object"
    words = {"string": "text", "null": "none", "integer": "whole number", "boolean": "true or false"}
    if about.get("format") == "date":
        return "date"
    return words.get(about.get("type", ""), about.get("type", "any JSON value"))


def _choices(values: list[Any]) -> str:
    return ", ".join(f"`{value}`" for value in values)


def main() -> None:
    write_atomically(FOLDER / "schema.json", json_schema())
    write_atomically(DOCS, with_field_tables(DOCS.read_text(encoding="utf-8")).encode())
    print(f"{FOLDER / 'schema.json'}, {DOCS}")


if __name__ == "__main__":
    main()
