"""From views to pages: every page is a template and what it is given. Autoescape is on for all of them, always."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import jinja2
from markupsafe import Markup

from harness.benchmarks.embedded import NANO_NOTE
from harness.metrics import uncertainty
from harness.metrics.ranking import CUTOFFS
from leaderboard import compare, heat, plot, words
from leaderboard.backbones import backbone_pages
from leaderboard.columns import COLUMNS, columns_of
from leaderboard.headline import weights
from leaderboard.methods import command, method_pages
from leaderboard.views import Line, View
from pruners.core.budget import STANDARD

STATUS = {
    "reported": "a paper's figures, as printed",
    "unpinned": "measured on data, or beside a full model, that no maintainer has pinned: without a rank",
    "self-reported": "measured by who submitted it; nobody has checked it",
    "recomputed": "its scores were computed again from the rankings it brings",
    "reproduced": "measured again by someone else",
}
BLOCKS = "p|h[1-6]|ul|dl|div|table|section|form|fieldset|pre|details|figure|nav|header|main|footer"
"""Elements that end a paragraph."""
PARTS = (
    "html|meta|title|link|script|thead|tbody|tr|th|td|caption|li|dt|dd|svg|defs|g|path|polyline|text|use|circle|rect"
)
"""Others before which a line break is no space."""
NO_CODE = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'"
"""Nothing but the site's own files: text of a submission that got past the escaping still could not run."""


def environment(base_url: str | None) -> jinja2.Environment:
    env = jinja2.Environment(
        loader=jinja2.PackageLoader("leaderboard"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters |= {
        "fixed": words.fixed,
        "percent": words.percent,
        "budget": words.budget_name,
        "short": words.short,
        "file": words.file_name,
        "link": words.web_link,
        "formula": words.formula,
        "titled": words.titled,
        "short_set": heat.short_name,
    }
    env.policies["json.dumps_kwargs"] = {"sort_keys": True, "separators": (",", ":")}
    env.globals |= {
        "base_url": base_url,
        "csp": Markup(NO_CODE),
        "nano_note": NANO_NOTE[0].upper() + NANO_NOTE[1:] + ".",
        "nano_short": "Figures of a nano model: they do not speak for backbones of ColPali’s scale.",
        "status_words": STATUS,
        "standard": STANDARD,
    }
    return env


def render_all(views: Sequence[View], base_url: str | None) -> Iterator[tuple[str, str]]:
    """Every page: its path in the site, and its text."""
    env = environment(base_url)
    shelves = on_shelves(views)

    def page(path: str, template: str, **given: Any) -> tuple[str, str]:
        root = "../" * path.count("/")
        return path, compact(env.get_template(template).render(path=path, root=root, shelves=shelves, **given))

    yield page("index.html", "index.html.j2", groups=overview(views))
    yield page("about.html", "about.html.j2", **rules())
    yield page("submit.html", "submit.html.j2")
    for view in views:
        columns = columns_of(view)
        maps = {budget: heat.heat_map(view, budget) for budget in view.budgets}
        given = {"view": view, "columns": columns, "plot": plot.trade_off(view), "maps": maps}
        yield page(f"board/{view.slug}.html", "board.html.j2", **given, steps=heat.legend(), kept=plot.kept)
        pairs = compare.make_pairs(view)
        yield page(f"compare/{view.slug}.html", "compare.html.j2", view=view, pairs=pairs, data=compare.packed(pairs))
    for method in method_pages(views):
        yield page(f"method/{method.slug}.html", "method.html.j2", page=method, command=command(method.entry))
    for backbone in backbone_pages(views):
        yield page(f"backbone/{backbone.slug}.html", "backbone.html.j2", page=backbone, **backbone_size())


def on_shelves(views: Sequence[View]) -> dict[str, dict[str, list[View]]]:
    """kind -> benchmark -> views, in their order: what one can choose from."""
    shelves: dict[str, dict[str, list[View]]] = {}
    for view in views:
        shelves.setdefault(view.kind, {}).setdefault(view.benchmark, []).append(view)
    return shelves


def compact(html: str) -> str:
    """The same page in fewer bytes: HTML lets many end tags, quotes of plain attributes and lines be left out.

    So it is with the scope of a header cell: among others it is a column's, beside figures it is a row's.

    Text of submissions is escaped by now and has neither tags nor quotes that this could touch.
    """
    html = re.sub(r'<th scope="(?:col|row)"', "<th", html)
    html = re.sub(r"</(?:td|th|tr|thead|tbody|li|option|dt|dd)>", "", html)
    html = re.sub(rf"</p>(?=\s*</?(?:{BLOCKS})\b)", "", html)
    html = re.sub(r'="([\w.#/:-]*[\w.-])"(?=[\s>])', r"=\1", html, flags=re.ASCII)
    return re.sub(rf"\n+(?=</?(?:{BLOCKS}|{PARTS})\b)|\n+(?=\n)", "", html)


def page_count(views: Sequence[View]) -> int:
    """How many pages `render_all` will give."""
    return 3 + 2 * len(views) + len(method_pages(views)) + len(backbone_pages(views))


def overview(views: Sequence[View]) -> list[dict[str, Any]]:
    """The landing page: for each benchmark a table of headlines, methods down and backbones across.

    Backbones that read text tokens, and the nano model, stand in tables of their own.
    """
    groups: dict[tuple[str, bool, str], list[View]] = {}
    for view in views:
        groups.setdefault((view.kind, view.nano, view.benchmark), []).append(view)
    found = []
    for (kind, nano, benchmark), members in groups.items():
        best: dict[str, dict[str, Line]] = {}
        for view in members:
            for line in view.lines:
                if line.area is not None:
                    best.setdefault(line.method.name, {}).setdefault(view.slug, line)
        order = sorted(best, key=lambda name: (-max(line.area or 0 for line in best[name].values()), name))
        rows = [(name, [best[name].get(view.slug) for view in members]) for name in order]
        statuses = [name for name in STATUS if any(li.entry.status == name for v in members for li in v.lines)]
        found.append(
            {"kind": kind, "nano": nano, "benchmark": benchmark, "views": members, "rows": rows, "statuses": statuses}
        )
    return found


def rules() -> dict[str, Any]:
    """The constants that the page of rules speaks of, from the code that uses them."""
    return {
        "resamples": f"{uncertainty.RESAMPLES:,}",
        "level": f"{100 * uncertainty.LEVEL:g} %",
        "cutoffs": ", ".join(map(str, CUTOFFS)),
        "shares": [words.fixed(100 * share, 1) for share in weights()],
        "steps": heat.legend(),
        "columns": COLUMNS,
    }


def backbone_size() -> dict[str, int]:
    from leaderboard import backbones

    return {"width": backbones.WIDTH, "height": backbones.HEIGHT, "edge": backbones.EDGE}
