"""From views to files: every page is a template and what it is given. Autoescape is on for all of them, always.

Pages work from a folder, where a browser lets no script fetch a file. So what a page does not hold itself (rows beyond
the first, other axes of a plot, intervals of a pair, the words of the search) is a small script that hands it over.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

import jinja2
from markupsafe import Markup

from harness.advice.rule import floored
from harness.advice.words import name as taken
from harness.benchmarks.embedded import NANO_NOTE
from harness.metrics import uncertainty
from harness.metrics.ranking import CUTOFFS
from harness.submissions.verified import SignedReport, reports_of
from leaderboard import answers, compare, exports, heat, plot, words
from leaderboard.advice import board_advice
from leaderboard.backbones import backbone_pages, backbone_size
from leaderboard.columns import COLUMNS, columns_of
from leaderboard.groups import LOCAL
from leaderboard.headline import weights
from leaderboard.methods import command, method_pages
from leaderboard.pictures import FRONT, Pictures, picture_path
from leaderboard.results import result_page, result_path
from leaderboard.views import View, shelf_order, view_slug
from pruners.core.budget import STANDARD

STATUS = {
    "reported": "a paper's figures, as printed",
    "unpinned": "measured on data, or beside a full model, that no maintainer has pinned: without a rank",
    "self-reported": "measured by who submitted it; nobody has checked it",
    "recomputed": "its scores were computed again from the rankings it brings",
    "reproduced": "measured again by someone else",
    "verified": "measured again from scratch by a maintainer: the same rankings came out",
    LOCAL: "a run of your own, not submitted: shown as a difference, never ranked",
}
NO_CODE = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; base-uri 'none'; form-action 'none'"
)
"""Nothing but the site's own files: text of a submission that got past the escaping still could not run."""
ROWS = 300
"""Rows of a board that its page holds, over all budgets; the others are handed over by scripts of PART rows."""
PART = 250
File = tuple[str, bytes]


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
        "signed": words.signed,
        "amount": words.amount,
        "budget": words.budget_name,
        "short": words.short,
        "file": words.file_name,
        "link": words.web_link,
        "formula": words.formula,
        "titled": words.titled,
        "short_set": heat.short_name,
        "taken": taken,
        "floored": floored,
    }
    env.policies["json.dumps_kwargs"] = {"sort_keys": True, "separators": (",", ":")}
    env.globals |= {
        "base_url": base_url,
        "csp": Markup(NO_CODE),
        "nano_note": NANO_NOTE[0].upper() + NANO_NOTE[1:] + ".",
        "nano_short": "Figures of a nano model: they do not speak for backbones of ColPali’s scale.",
        "status_words": STATUS,
        "standard": STANDARD,
        "result_path": result_path,
        "million": 1_000_000,
    }
    return env


def script(function: str, *given: Any) -> bytes:
    """A file that hands something over to a page's script."""
    return f"{function}({', '.join(json.dumps(one, separators=(',', ':')) for one in given)});\n".encode()


class SitePages:
    """Makes files. `shelves` are all views by name, known before any is read, so that boards can link to each other."""

    def __init__(self, shelves: Sequence[tuple[str, str, str]], base_url: str | None) -> None:
        self.base_url, self.env = base_url, environment(base_url)
        self.stamp = hashlib.sha256(repr((sorted(shelves), base_url)).encode()).hexdigest()
        on_shelves: dict[str, dict[str, list[tuple[str, str]]]] = {}
        for kind, backbone, benchmark in sorted(shelves, key=lambda shelf: shelf_order(*shelf)):
            slug = view_slug(benchmark, backbone, kind)
            on_shelves.setdefault(kind, {}).setdefault(benchmark, []).append((backbone, slug))
        self.env.globals["shelves"] = on_shelves

    def page(self, path: str, template: str, **given: Any) -> File:
        text = self.env.get_template(template).render(path=path, root="../" * path.count("/"), **given)
        return path, text.encode()

    def of_view(self, view: View) -> tuple[compare.Pairs, dict[str, bytes]]:
        """The files of one view, and the pairs that were resampled for them."""
        pairs = compare.make_pairs(view)
        return pairs, dict([*self._board(view), *self._compare(pairs), *self._results(view), *exports.rows_files(view)])

    def _board(self, view: View) -> Iterator[File]:
        columns, room = columns_of(view), max(20, ROWS // max(1, len(view.budgets)))
        given = {"view": view, "columns": columns, "room": room, "part": PART}
        drawn = dict(plot.plots(view))
        first = next(iter(drawn), None)
        xs, ys = plot.axes(view)
        maps = {budget: heat.heat_map(view, budget) for budget in view.budgets}
        yield self.page(
            f"board/{view.slug}.html", "board.html.j2",
            **given, drawings=drawn.get(first or ""), drawing=first, xs=xs, ys=ys, maps=maps, steps=heat.legend(),
            advice=board_advice(view),
        )  # fmt: skip
        for budget in view.budgets:
            rows = view.listed(budget)[room:]
            for n, start in enumerate(range(0, len(rows), PART)):
                part = rows[start : start + PART]
                _, text = self.page(f"board/{view.slug}.html", "rows.html.j2", **given, rows=part)
                yield f"board/{view.slug}.{budget:g}.{n}.js", script("rowsArrived", text.decode())
        for name, sizes in drawn.items():
            _, text = self.page(f"board/{view.slug}.html", "drawing.html.j2", view=view, drawings=sizes)
            yield f"plot/{view.slug}.{name}.js", script("plotArrived", f"{view.slug}.{name}", text.decode())

    def _compare(self, pairs: compare.Pairs) -> Iterator[File]:
        view, data = pairs.view, compare.page_data(pairs)
        yield self.page(f"compare/{view.slug}.html", "compare.html.j2", view=view, pairs=pairs, data=data)
        for place, found in compare.bounds_files(pairs):
            yield f"compare/{view.slug}.{place}.js", script("boundsArrived", place, found)

    def _results(self, view: View) -> Iterator[File]:
        for line in view.lines:
            yield self.page(
                result_path(view, line), "result.html.j2", page=result_page(view, line), view=view, line=line
            )

    def of_site(
        self, views: Sequence[View], pictures: Pictures, verified: Sequence[SignedReport] = ()
    ) -> Iterator[File]:
        """The files that need all views."""
        picture = FRONT if pictures.front else None
        yield self.page("index.html", "index.html.j2", picture=picture, **front(views))
        yield self.page("about.html", "about.html.j2", **rules())
        yield self.page("submit.html", "submit.html.j2")
        for method in method_pages(views):
            text = command(method.entry, sorted(method.budgets))
            kept = [(picture, picture_path(picture)) for picture in pictures.of_method.get(method.name, ())]
            yield self.page(f"method/{method.slug}.html", "method.html.j2", page=method, command=text, kept=kept)
        for backbone in backbone_pages(views):
            given = {"page": backbone, "verified": reports_of(backbone.views[0].backbone, verified), **backbone_size()}
            yield self.page(f"backbone/{backbone.slug}.html", "backbone.html.j2", **given)
        yield from exports.search_files(views)
        yield exports.site_file(views)
        yield exports.feed_file(views, self.base_url)


def front(views: Sequence[View]) -> dict[str, Any]:
    """What the front page is given."""
    found = [answer for view in views if (answer := answers.answer(view))]
    groups: dict[tuple[str, bool, str], list[answers.Answer]] = {}
    for one in found:
        groups.setdefault((one.view.kind, one.view.nano, one.view.benchmark), []).append(one)
    drawn = [(view, *next(plot.plots(view), (None, None))) for view in plot_order(views)[:1]]
    return {
        "groups": groups,
        "views": views,
        "drawable": [(view, *plot.axes(view)) for view in plot_order(views)],
        "drawn": drawn[0] if drawn else None,
        "news": answers.news(views)[: answers.NEWEST],
        "contradictions": answers.contradictions(views),
        "counts": {
            "methods": len({line.base for view in views for line in view.lines}),
            "backbones": len({(view.backbone, view.kind) for view in views}),
            "benchmarks": len({view.benchmark for view in views}),
        },
    }


def plot_order(views: Sequence[View]) -> list[View]:
    """Views with a plot; the one that is drawn first has sizes in bytes, and the most methods measured."""
    able = [view for view in views if next(plot.plots(view), None)]

    def worth(view: View) -> tuple:
        measured = sum(line.measured is not None or not line.reported for line in view.lines)
        return -any(row.bytes for line in view.lines for row in line.rows.values()), view.kind != "visual", -measured

    return sorted(able, key=worth)


def rules() -> dict[str, Any]:
    """The constants that the page of rules speaks of, from the code that uses them."""
    return {
        "resamples": f"{uncertainty.RESAMPLES:,}",
        "level": f"{100 * uncertainty.LEVEL:g} %",
        "cutoffs": ", ".join(map(str, CUTOFFS)),
        "shares": [words.fixed(100 * share, 1) for share in weights()],
        "columns": COLUMNS,
    }
