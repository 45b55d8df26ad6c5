"""Words and numbers as pages show them, and the names of files. Whatever a submission says passes through here."""

from __future__ import annotations

import hashlib
import re

from markupsafe import Markup, escape

from pruners.core.budget import UNPRUNED

NONE = "–"


def fixed(value: float | None, digits: int = 1) -> str:
    """A number with so many digits after the point; a dash where there is none."""
    return NONE if value is None else f"{value:.{digits}f}"


def signed(value: float | None, digits: int = 1) -> str:
    """A difference, with a sign unless it rounds to 0."""
    if value is None:
        return NONE
    text = f"{value:+.{digits}f}"
    return (text[1:] if float(text) == 0 else text).replace("-", "−")


def percent(value: float | None, digits: int = 1) -> str:
    """A fraction as a percentage, without a sign: 0.102 is 10.2. Budgets lose useless zeros: 0.05 is 5."""
    return NONE if value is None else f"{100 * value:.{digits}f}"


def amount(value: float | None) -> str:
    """Bytes: 5120 is "5.12 KB"."""
    if value is None:
        return NONE
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g} bytes"


def budget_name(budget: float) -> str:
    """0.05 is "5 %"; where a codec alone is measured nothing is pruned."""
    if budget >= UNPRUNED:
        return "all vectors"
    return f"{100 * budget:.3g} %"


def short(text: str, most: int = 60) -> str:
    """A text that fits in a table."""
    return text if len(text) <= most else text[: most - 1] + "…"


def file_name(name: str) -> str:
    """A name as a file name that can never leave its folder: letters, digits, `._=-`, not starting with a dot.

    A name that had to change, is long, or differs from its lower case gets a hash, so that two names never share a
    file, not even on disks that cannot tell `Sap` from `sap`.
    """
    safe = re.sub(r"[^a-z0-9._=-]", "_", name.lower()).lstrip("._=-")[:80]
    if safe and safe == name and not re.search(r"-[0-9a-f]{8}$", name):  # which looks like a name with a hash
        return safe
    return f"{safe or 'x'}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def web_link(url: str | None, text: str | None = None) -> Markup:
    """A link, if it is one that a browser may follow; otherwise the text alone."""
    if not url:
        return Markup("")
    shown = short(text or re.sub(r"^https?://", "", url), 80)
    if not re.fullmatch(r"https?://[^\s<>\"'`{}\\]+", url):
        return Markup("<bdi>{}</bdi>").format(shown)
    return Markup('<a href="{}" rel="nofollow noopener ugc"><bdi>{}</bdi></a>').format(url, shown)


def formula(text: str) -> Markup:
    """`s_{j}` and `x^{2}` with real sub- and superscripts. Everything else is escaped."""
    marked = re.sub(r"_\{([^{}]*)\}", r"<sub>\1</sub>", str(escape(text)))
    return Markup(re.sub(r"\^\{([^{}]*)\}", r"<sup>\1</sup>", marked))


TITLES = {
    "vidore": "ViDoRe",
    "vidore-v1": "ViDoRe v1",
    "vidore-v2": "ViDoRe v2",
    "colpali": "ColPali",
    "colqwen2": "ColQwen2",
    "colqwen2.5": "ColQwen2.5",
    "colsmol": "ColSmol",
    "jina-v4": "Jina v4",
    "minilm": "MiniLM",
}


def titled(name: str) -> str:
    """A benchmark's or backbone's name as its authors write it; others as they are."""
    return TITLES.get(name, short(name, 80))
