"""What `harness show` and `harness explain` draw, in a real browser: what was kept, and nobody's script."""

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image
from playwright.sync_api import Locator, Page

import harness
from harness.why.html import explanation_page, view_page
from harness.why.output import Drawing
from harness.why.page_view import PageView
from tests.harness.why.world import World, make_world

EVIL = "<script>window.taken = 1</script><img src=x onerror='window.taken = 2'>\"'><svg onload=window.taken=3>"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("why"))


@pytest.fixture(scope="module")
def view(world: World) -> PageView:
    run = {"run": world.run, "store": world.stores}
    return harness.show("page-203", ["sap", "kmeans"], budgets=[0.3], query="q3", data_set="plain", **run).view


def opened(tab: Page, tmp_path: Path, text: str) -> Page:
    problems: list[str] = []
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    tab.goto((tmp_path / "page.html").as_uri())
    assert problems == []
    return tab


def clear_patches(panel: Locator, boxes: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Which patches show the page's own colour, by the pixels at a quarter and at three quarters of each."""
    shot = np.asarray(Image.open(io.BytesIO(panel.screenshot())).convert("L")).astype(int)
    shares = boxes / np.array([*size, *size])
    found = []
    for x0, y0, x1, y1 in shares:
        dots = [(x0 + (x1 - x0) * part, y0 + (y1 - y0) * part) for part in (0.25, 0.75)]
        found.append(all(shot[int(y * shot.shape[0]), int(x * shot.shape[1])] > 180 for x, y in dots))
    return np.array(found)


def test_the_patches_drawn_are_those_kept_and_a_shifted_grid_is_seen(tab: Page, tmp_path: Path, view: PageView) -> None:
    still = replace(view, query=None, rows=[[replace(view.rows[0][0], hits=None)]])
    boxes, kept = view.canvas.boxes, view.rows[0][0].kept.labels >= 0
    assert 1 < kept.sum() < len(kept) - 1
    tab.set_viewport_size({"width": 1200, "height": 1400})
    panel = opened(tab, tmp_path, view_page(still)).locator(".why-methods section .why-page")
    assert clear_patches(panel, boxes, view.canvas.size).tolist() == kept.tolist()
    shifted = replace(still, canvas=replace(view.canvas, boxes=np.roll(boxes, 1, axis=0)))
    panel = opened(tab, tmp_path, view_page(shifted)).locator(".why-methods section .why-page")
    assert clear_patches(panel, boxes, view.canvas.size).tolist() != kept.tolist()


def test_rings_lie_on_the_patches_that_a_plain_loop_finds(
    tab: Page, tmp_path: Path, world: World, view: PageView
) -> None:
    store = harness.encode(world.backbone, world.benchmark, store=world.stores)["plain"]
    page, query = store.page(3), store.query(store.query_ids.index("q3"))
    kept = np.flatnonzero(view.rows[0][0].kept.labels >= 0)
    groups = opened(tab, tmp_path, view_page(view)).locator(".why-methods section").first.locator(".why-move")
    places_of = "g => [...g.querySelectorAll('circle')].map(c => [c.cx.baseVal.value, c.cy.baseVal.value])"
    drawn = groups.evaluate_all(f"all => all.map({places_of})")
    assert len(drawn) == len(query)
    for token, circles in zip(query.tolist(), drawn, strict=True):
        similarity = [sum(a * b for a, b in zip(token, v, strict=True)) for v in page.vectors.tolist()]
        best, left = max(range(len(page)), key=lambda i: similarity[i]), max(kept, key=lambda i: similarity[i])
        places = [best] if best == left else [best, left]
        middles = [(view.canvas.boxes[p, :2] + view.canvas.boxes[p, 2:]) / 2 for p in places]
        assert np.allclose(circles, middles)


def test_a_token_under_the_pointer_shows_its_own_hits_alone(tab: Page, tmp_path: Path, view: PageView) -> None:
    shown = opened(tab, tmp_path, view_page(view))
    shown.locator(".why-token").nth(2).hover()
    on = shown.locator(".why-move.why-on").evaluate_all("all => all.map(g => g.dataset.token)")
    assert set(on) == {"2"}


@pytest.fixture(scope="module")
def evil_world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Queries, ids and the folder of a data set are full of markup."""
    import tests.harness.why.world as worlds

    write = worlds.write_data_set

    def write_evil(folder: Path, numbers: range, **more) -> None:
        write(folder, numbers, **more)
        if folder.name != "plain":
            return
        queries, qrels, corpus = (next((folder / part).glob("*.parquet")) for part in ("queries", "qrels", "corpus"))
        for path, changes in (
            (queries, {"query-id": lambda v: v + EVIL, "query": lambda v: v, "language": lambda v: EVIL}),
            (qrels, {"query-id": lambda v: v + EVIL, "corpus-id": lambda v: v + EVIL}),
            (corpus, {"corpus-id": lambda v: v + EVIL}),
        ):
            rows = pq.read_table(path).to_pylist()
            changed = [{k: changes[k](v) if k in changes else v for k, v in row.items()} for row in rows]
            pq.write_table(type(pq.read_table(path)).from_pylist(changed), path)
        folder.rename(folder.with_name("<img src=x onerror=window.taken=4>"))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worlds, "write_data_set", write_evil)
        return make_world(tmp_path_factory.mktemp("evil"))


def test_no_text_of_a_benchmark_runs_as_script(tab: Page, tmp_path: Path, evil_world: World) -> None:
    report = evil_world.results().explain("sap", budget=0.1, store=evil_world.stores)
    query = next(case for case in report.found.cases if case.panels and EVIL in case.id).query
    shouted = replace(query, text=EVIL, tokens=[replace(token, text=EVIL) for token in query.tokens])
    cases = [replace(case, query=shouted) if case.query else case for case in report.found.cases]
    found = replace(report.found, cases=cases, method=EVIL, missing=[EVIL], run=EVIL)
    shown = opened(tab, tmp_path, explanation_page(found))
    assert shown.evaluate("window.taken") is None
    assert shown.locator("img").count() == 0
    assert shown.locator("script").count() == 1
    assert EVIL in shown.locator("h1").inner_text(), "it is shown as it is written"
    drawing = Drawing(replace(cases[0].panels[0].view, query=shouted, page_id=EVIL))
    shown = opened(tab, tmp_path, drawing.html())
    assert shown.evaluate("window.taken") is None
    shown = opened(tab, tmp_path, f"<!doctype html><body>{drawing._repr_html_()}{report._repr_html_()}")
    assert shown.evaluate("window.taken") is None
    assert "window.taken" in drawing.picture("svg").decode()
    assert "<script" not in drawing.picture("svg").decode()


def test_an_injected_script_would_be_refused_by_the_page_itself(tab: Page, tmp_path: Path, world: World) -> None:
    text = world.results().explain("sap", budget=0.1, store=world.stores).html()
    (tmp_path / "page.html").write_text(text.replace("</main>", "<script>window.taken = 1</script></main>"))
    tab.goto((tmp_path / "page.html").as_uri())
    assert tab.evaluate("window.taken") is None


def test_filters_keys_and_links(tab: Page, tmp_path: Path, world: World) -> None:
    shown = opened(tab, tmp_path, world.results().explain("sap", budget=0.1, store=world.stores).html())
    cases = shown.locator(".why-case")
    whole = cases.count()
    assert whole > 4
    shown.select_option("select[name=set]", "tongues")
    left = shown.locator(".why-case:visible")
    assert 0 < left.count() < whole
    assert set(left.evaluate_all("all => all.map(each => each.dataset.set)")) == {"tongues"}
    assert shown.locator("output").inner_text() == f"{left.count()} shown"
    shown.select_option("select[name=set]", "")
    shown.locator("h1").click()
    shown.keyboard.press("j")
    shown.keyboard.press("j")
    assert shown.evaluate("location.hash") == "#q2"
    shown.keyboard.press("k")
    assert shown.evaluate("location.hash") == "#q1"
    shown.keyboard.press("/")
    shown.keyboard.type("nothing like it")
    assert shown.locator(".why-case:visible").count() == 0


@pytest.mark.parametrize("width", [1440, 768, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_and_can_be_read(tab: Page, tmp_path: Path, world: World, width: int, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    tab.set_viewport_size({"width": width, "height": 900})
    tab.emulate_media(color_scheme=scheme)
    shown = opened(tab, tmp_path, world.results().explain("sap", budget=0.1, store=world.stores).html())
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    faults = [(fault["id"], fault["nodes"][0]["html"][:200]) for fault in Axe().run(shown).response["violations"]]
    assert faults == []
