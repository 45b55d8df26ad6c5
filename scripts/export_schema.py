"""Write what is derived from the schema of submissions: `submissions/schema.json`, tables of docs/submissions.md."""

from __future__ import annotations

from pathlib import Path

from harness.files import write_atomically
from harness.submissions.entry import FOLDER
from harness.submissions.reference import json_schema, with_field_tables

DOCS = Path(__file__).parents[1] / "docs" / "submissions.md"


def main() -> None:
    write_atomically(FOLDER / "schema.json", json_schema())
    write_atomically(DOCS, with_field_tables(DOCS.read_text(encoding="utf-8")).encode())
    print(f"{FOLDER / 'schema.json'}, {DOCS}")


if __name__ == "__main__":
    main()
