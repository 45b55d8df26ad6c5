"""The data itself, for programs: `site.json` and the rows it names, the words of the search, and a feed of what is new.

docs/leaderboard.md describes the fields. Everything is paged, so that no file grows with the number of submissions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from leaderboard.answers import News, news
from leaderboard.backbones import backbone_pages
from leaderboard.lines import Line
from leaderboard.methods import method_pages
from leaderboard.results import result_path
from leaderboard.rows import Row
from leaderboard.same_bytes import Fit
from leaderboard.views import View
from leaderboard.words import titled

FORMAT = 1
RECORDS = 250
"""Rows in a file of data."""
WORDS = 4000
"""Entries in a file of the search."""
FEED = 50
"""Entries of the feed."""


def rows_files(view: View) -> Iterator[tuple[str, bytes]]:
    """Every line at every budget, unrounded."""
    found = [_record(view, line, row) for line in view.lines for _, row in sorted(line.rows.items())]
    for n, start in enumerate(range(0, max(1, len(found)), RECORDS)):
        yield _rows_path(view, n), (json.dumps(found[start : start + RECORDS], indent=0) + "\n").encode()


def _rows_path(view: View, n: int) -> str:
    return f"data/{view.slug}.{n}.json"


def _record(view: View, line: Line, row: Row) -> dict[str, Any]:
    s = line.entry.submission
    return {
        "method": line.method.name,
        "label": line.label,
        "expression": line.method.expression,
        "track": line.method.track.value,
        "codec": line.stored,
        "budget": row.budget,
        "retention": row.retention,
        "interval": [row.interval.low, row.interval.high] if row.interval else None,
        "rank": row.rank,
        "rank_overall": row.overall,
        "area": line.area,
        "ndcg": dict(row.ndcg),
        "score_retention": row.score_retention,
        "kept": row.realised,
        "vectors_per_page": row.vectors,
        "bytes_per_page": row.bytes,
        "prune_ms": row.milliseconds,
        "data_sets": {name: row.retention_on(name) for name in row.data_sets},
        "status": line.entry.status,
        "submission": s.id,
        "submitter": s.origin.submitter,
        "submitted": s.origin.submitted.isoformat(),
        "also_measured_by": [
            {
                "kind": a.kind.value,
                "submission": a.entry.submission.id,
                "submitter": a.entry.submission.origin.submitter,
            }
            for a in line.again
        ],
        "page": result_path(view, line),
    }


def site_file(views: Sequence[View]) -> tuple[str, bytes]:
    """What there is, and in which files."""
    found = [
        {
            "benchmark": view.benchmark,
            "backbone": view.backbone,
            "kind": view.kind,
            "budgets": list(view.budgets),
            "data_sets": list(view.data_sets),
            "codecs": list(view.codecs),
            "methods": len(view.lines),
            "resamples": view.resamples,
            "board": f"board/{view.slug}.html",
            "compare": f"compare/{view.slug}.html",
            "rows": [_rows_path(view, n) for n in range(_parts(view))],
            "same_bytes": [
                {
                    "share": same.share,
                    "bytes_per_page": same.bytes,
                    "best": {way: _fit(view, fit) for way, fit in same.best.items()},
                    "tied": [_fit(view, fit) for fit in same.tied],
                }
                for same in view.same_bytes
            ],
        }
        for view in views
    ]
    facts = {"site": "pruneboard", "format": FORMAT, "feed": "feed.xml", "views": found}
    return "site.json", (json.dumps(facts, indent=1) + "\n").encode()


def _fit(view: View, fit: Fit) -> dict[str, Any]:
    line = view.by_label[fit.label]
    row = line.rows[fit.budget]
    return {
        "label": fit.label,
        "codec": line.stored,
        "budget": fit.budget,
        "bytes_per_page": row.bytes,
        "retention": row.retention,
        "interval": [row.interval.low, row.interval.high] if row.interval else None,
        "status": line.entry.status,
    }


def _parts(view: View) -> int:
    rows = sum(len(line.rows) for line in view.lines)
    return max(1, -(-rows // RECORDS))


def search_files(views: Sequence[View]) -> Iterator[tuple[str, bytes]]:
    """Kind, name and page of everything one may look for; the first file says how many there are."""
    found = [("board", f"{titled(v.backbone)} on {titled(v.benchmark)}", f"board/{v.slug}.html") for v in views]
    found += [("backbone", titled(b.name), f"backbone/{b.slug}.html") for b in backbone_pages(views)]
    found += [
        ("method", m.name if m.title == m.name else f"{m.name}: {m.title}", f"method/{m.slug}.html")
        for m in method_pages(views)
    ]
    parts = [found[start : start + WORDS] for start in range(0, max(1, len(found)), WORDS)]
    for n, part in enumerate(parts):
        yield f"search.{n}.js", f"searchArrived({json.dumps(part)}, {len(parts)});\n".encode()


def feed_file(views: Sequence[View], base_url: str | None) -> tuple[str, bytes]:
    """An Atom feed of submissions: one entry for a day, a submitter, a benchmark and a backbone."""
    entries = news(views)[:FEED]
    updated = f"{entries[0].day.isoformat()}T00:00:00Z" if entries else "1970-01-01T00:00:00Z"
    root = f"{base_url}/" if base_url else ""
    text = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<feed xmlns="http://www.w3.org/2005/Atom">',
        "<title>PruneBoard: new submissions</title>",
        f"<id>{escape(root) or 'urn:pruneboard:feed'}</id>",
        f"<updated>{updated}</updated>",
        f'<link rel="self" href={quoteattr(root + "feed.xml")}/>',
        f"<link href={quoteattr(root + 'index.html')}/>",
        "<author><name>PruneBoard</name></author>",
        *(_entry(one, root) for one in entries),
        "</feed>",
    ]
    return "feed.xml", ("\n".join(text) + "\n").encode()


def _entry(one: News, root: str) -> str:
    names = [line.label for line in one.lines]
    shown = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
    where = f"{titled(one.view.backbone)} on {titled(one.view.benchmark)}"
    title = f"{len(names)} {'method' if len(names) == 1 else 'methods'}: {where}"
    first = one.lines[0].entry.submission.id
    return (
        f"<entry><title>{escape(title)}</title>"
        f"<id>urn:pruneboard:{escape(f'{one.day.isoformat()}:{one.view.slug}:{first}')}</id>"
        f"<updated>{one.day.isoformat()}T00:00:00Z</updated>"
        f"<link href={quoteattr(f'{root}board/{one.view.slug}.html')}/>"
        f"<author><name>{escape(_plain(one.submitter))}</name></author>"
        f"<summary>{escape(_plain(f'{shown} ({one.status})'))}</summary></entry>"
    )


def _plain(text: str) -> str:
    """Without what XML cannot hold."""
    return "".join(c for c in text if c in "\t\n" or (c >= " " and c not in "\ufffe\uffff"))[:2000]
