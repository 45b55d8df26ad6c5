"""What hosts ask for beside a static site: a Hugging Face Space reads its README, GitHub Pages has a 404 page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from leaderboard.views import View

SPACE = """---
title: PruneBoard
emoji: ✂️
colorFrom: green
colorTo: blue
sdk: static
app_file: index.html
pinned: false
short_description: What pruning a multi-vector page index costs
---

# PruneBoard

A static site, built by `harness leaderboard --publish-ready`. This folder can be published as it is: as a static
Hugging Face Space (the lines above are its settings), on GitHub Pages (`.nojekyll` and `404.html` are there), or by any
web server. Links are relative, nothing is loaded from elsewhere. `site.json` lists the data, `feed.xml` what is new.
"""
NOT_FOUND = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Not here · PruneBoard</title>
<h1>There is no such page</h1>
<p>It may have been renamed. <a href="{home}">The front page</a> leads to every board, method and backbone.</p>
"""


def extra_files(views: Sequence[View], base_url: str | None) -> Iterator[tuple[str, bytes]]:
    yield "README.md", SPACE.encode()
    yield "404.html", NOT_FOUND.format(home=escape(f"{base_url}/") if base_url else "index.html").encode()
    if base_url:
        paths = ["index.html", "about.html", "submit.html", *(f"board/{view.slug}.html" for view in views)]
        urls = "".join(f"<url><loc>{escape(f'{base_url}/{path}')}</loc></url>\n" for path in paths)
        text = '<?xml version="1.0" encoding="utf-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
        yield "sitemap.xml", f"{text}{urls}</urlset>\n".encode()
