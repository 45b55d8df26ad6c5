"""A board's figures as the Markdown tables in docs: `python scripts/results_table.py` writes them, `--check` compares.

A page has the table of a board between `<!-- board minidocs/nano -->` and the next blank line: every method that the
board has in float16, or in a form of its own, with retention, its interval, Score Retention and rank by budget.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from harness.submissions.validation import validate  # noqa: E402 (from this checkout)
from leaderboard.rows import Row  # noqa: E402
from leaderboard.views import View, make_views  # noqa: E402
from pruners import STANDARD  # noqa: E402
from pruners.core.codec_catalog import DEFAULT  # noqa: E402

PAGES = (ROOT / "docs" / "minidocs.md", ROOT / "docs" / "real-pages.md")
TABLE = re.compile(r"(?P<mark><!-- board (?P<benchmark>[^/\s]+)/(?P<backbone>\S+) -->\n)(?P<table>(?:\|.*\n)*)")


def table_of(view: View) -> str:
    lines = [line for line in view.lines if line.codec == DEFAULT]
    lines.sort(key=lambda line: -(line.rows[view.default_budget].retention or 0.0))
    head = "| method | " + " | ".join(f"γ {b:.4g}: retention [95 %], SR" for b in STANDARD) + " |"
    rows = [f"| `{line.label}` | " + " | ".join(_cell(line.rows[b]) for b in STANDARD) + " |" for line in lines]
    return "\n".join([head, "| --- |" + " --- |" * len(STANDARD), *rows]) + "\n"


def _cell(row: Row) -> str:
    assert row.interval is not None
    rank = "" if row.overall is None else f" ({row.overall})"
    return f"{row.retention:.1f} [{row.interval.low:.1f}, {row.interval.high:.1f}], {row.score_retention:.3f}{rank}"


def written(text: str) -> str:
    """A page with its tables as the board has them."""

    def table(found: re.Match[str]) -> str:
        home = ROOT / "submissions" / found["benchmark"] / found["backbone"]
        report = validate(ROOT / "submissions", sorted(home.glob("*/*.json")))
        (view,) = make_views(report.entries, report.benchmarks)
        return found["mark"] + table_of(view)

    return TABLE.sub(table, text)


def main(check: bool) -> int:
    changed = []
    for page in PAGES:
        before = page.read_text(encoding="utf-8")
        if (after := written(before)) != before:
            changed.append(page.name)
            if not check:
                page.write_text(after, encoding="utf-8")
    what = "not what the board has" if check else "written"
    print(f"{what}: {', '.join(changed)}" if changed else "all as on the board")
    return int(check and bool(changed))


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--check", action="store_true", help="write nothing; status 1 if a page says something else")
    sys.exit(main(options.parse_args().check))
