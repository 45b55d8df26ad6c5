"""The checks that need no data: two made-up pages and two queries, through this project's way and through others."""

from __future__ import annotations

import harness.compat  # noqa: F401

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import torch
from PIL import Image, ImageDraw

from harness.backbones.base import EngineBackbone
from harness.backbones.batching import is_out_of_memory
from harness.backbones.contract import TEXT_TOKENS, Backbone
from harness.backbones.probe import ATTENTION_SIGNALS
from harness.store.encoded_page import EncodedPage
from harness.verification.eager import eager_signals
from harness.verification.library import mteb_inputs, stock_model
from harness.verification.report import FAILED, NOT_DONE, PASSED, Check
from pruners.core.errors import PruneBoardError

QUERIES = ("revenue", "What is the total revenue of the energy report in 2021, and how does it compare with 2020?")
EXACT, HALF = 1e-4, 5e-2
"""How far apart numbers may be that should be equal: with float32 weights, and with half precision."""


def test_pages() -> list[Image.Image]:
    """A landscape page with text at its left only, and a portrait page full of text."""
    return [_page((640, 440), 300), _page((440, 620), 440)]


def _page(size: tuple[int, int], until: int) -> Image.Image:
    image = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(image)
    for line in range(size[1] // 24):
        for word in range(until // 60):
            draw.text((8 + 60 * word, 8 + 24 * line), f"{line * 7919 + word * 104729:x}", fill="black")
    return image


class Subject:
    """A backbone under test; what several checks need is computed once."""

    def __init__(self, backbone: Backbone) -> None:
        self.backbone = backbone
        self.pages: list[Any] = test_pages() if backbone.card.kind != TEXT_TOKENS else [" ".join(QUERIES), QUERIES[0]]
        self.tolerance = EXACT if backbone.card.dtype == "float32" else HALF

    @cached_property
    def together(self) -> list[EncodedPage]:
        return self.backbone.encode_pages(self.pages)

    @property
    def engine(self) -> EngineBackbone:
        if not isinstance(self.backbone, EngineBackbone):
            raise NotPossibleError("it is no model of colpali-engine")
        return self.backbone

    @property
    def of_library(self) -> EngineBackbone:
        if self.engine.no_stock_path:
            raise NotPossibleError(self.engine.no_stock_path)
        return self.engine


class NotPossibleError(PruneBoardError):
    """A check that cannot be done here, and why."""


def loaded_tensors(subject: Subject) -> str:
    """Every tensor is accounted for by the loader, which stops and names what it misses or has left over."""
    model = getattr(subject.backbone, "model", None)
    if not isinstance(model, torch.nn.Module):
        raise NotPossibleError("its network is not at hand")
    count = sum(parameter.numel() for parameter in model.parameters())
    return f"{len(list(model.parameters()))} tensors, {count / 1e6:,.1f} million numbers; none missing, none left over"


def pinned_revision(subject: Subject) -> str:
    """A checkpoint that MTEB lists is read at MTEB's commit; that of an adapter counts, its base has none there."""
    import mteb

    card = subject.backbone.card
    listed = {meta.name: meta.revision for meta in mteb.get_model_metas()}
    if card.checkpoint not in listed:
        raise NotPossibleError("MTEB lists no checkpoint of that name; a folder has the hash of its files as revision")
    found, wanted = card.revision.partition("+")[0], listed[card.checkpoint]
    if found != wanted:
        raise PruneBoardError(f"revision {found} was read, MTEB's figures are of {wanted}")
    return f"{wanted}, as at MTEB"


def same_vectors(subject: Subject) -> str:
    """Pages through colpali-engine's own class and loader give the same vectors."""
    backbone = subject.of_library
    try:
        model = stock_model(backbone)
    except (RuntimeError, ValueError, OSError, KeyError, TypeError, AttributeError) as error:
        raise NotPossibleError(f"colpali-engine cannot load it: {type(error).__name__}: {str(error)[:200]}") from error
    inputs = backbone.page_inputs(subject.pages)
    visual, valid = backbone.visual_tokens(inputs), inputs["attention_mask"].bool()
    with torch.inference_mode():
        vectors = model(**{name: tensor.to(backbone.device) for name, tensor in inputs.items()}).float().cpu()
    worst = max(
        _apart(page.vectors, vectors[row][visual[row] & valid[row]]) for row, page in enumerate(subject.together)
    )
    return _within(worst, subject.tolerance, "from colpali-engine's own vectors")


def same_signals(subject: Subject) -> str:
    """Captured attention is that of eager attention in the first layer and a middle one (half precision: the first)."""
    backbone = subject.engine
    rows = [0] if subject.tolerance == HALF else sorted({0, backbone.card.layers // 2})
    layers = [backbone.attention_layers[row] for row in rows]
    inputs = backbone.page_inputs(subject.pages)
    visual, valid = backbone.visual_tokens(inputs), inputs["attention_mask"].bool()
    on_device = {name: tensor.to(backbone.device) for name, tensor in inputs.items()}
    truth = eager_signals(backbone.model, on_device, visual, valid, layers)
    worst = max(
        _apart(page.signals[name][rows].double() / scale, own[name] / scale)
        for page, own in zip(subject.together, truth, strict=True)
        for name in ATTENTION_SIGNALS
        for scale in [max(1.0, float(own[name].max()))]
    )
    return _within(worst, subject.tolerance, f"from eager attention in layers {', '.join(map(str, layers))}")


def finite_numbers(subject: Subject) -> str:
    """Vectors and signals are numbers: nothing else would notice, because NaN compares with nothing."""
    for page in subject.together:
        for name, found in {"vectors": page.vectors, "prompt vectors": page.prompt, **page.signals}.items():
            if found is not None:
                _require_finite(found, f"{name} of a page")
    for vectors in subject.backbone.encode_queries(QUERIES):
        _require_finite(vectors, "vectors of a query")
    return f"{len(subject.together)} pages and {len(QUERIES)} queries"


def page_alone(subject: Subject) -> str:
    """A page has the same vectors alone and beside another."""
    alone = [subject.backbone.encode_pages([page])[0] for page in subject.pages]
    worst = max(_apart(a.vectors, b.vectors) for a, b in zip(alone, subject.together, strict=True))
    return _within(worst, subject.tolerance, "between a page alone and in a batch")


def query_alone(subject: Subject) -> str:
    """A query has the same vectors alone and beside a longer one."""
    together = subject.backbone.encode_queries(QUERIES)
    alone = [subject.backbone.encode_queries([query])[0] for query in QUERIES]
    worst = max(_apart(a, b) for a, b in zip(alone, together, strict=True))
    return _within(worst, subject.tolerance, "between a query alone and beside a longer one")


def query_tokens(subject: Subject) -> str:
    """Queries are the token ids that MTEB's wrapper makes of them."""
    backbone = _listed(subject)
    return _same_ids(backbone, backbone.query_inputs(QUERIES), mteb_inputs(backbone, "text", QUERIES), "queries")


def page_tokens(subject: Subject) -> str:
    """Pages are the token ids, prompt included, that MTEB's wrapper makes of them."""
    backbone = _listed(subject)
    theirs = mteb_inputs(backbone, "image", subject.pages)
    return _same_ids(backbone, backbone.page_inputs(subject.pages), theirs, "pages")


def grid_in_place(subject: Subject) -> str:
    """Patches lie where the grid says: a page with text at its left has ink at the left of the grid only."""
    page = subject.together[0]
    if page.grid is None:
        raise NotPossibleError("its patches form no rectangle")
    rows, cols = page.grid
    if cols < 2:
        raise NotPossibleError("a grid with one column has no left and right")
    if rows * cols != len(page.vectors):
        raise PruneBoardError(f"the grid {rows} x {cols} has not the {len(page.vectors)} patches of the page")
    if "ink" not in page.signals:
        raise NotPossibleError("it gives no ink")
    ink = page.signals["ink"].reshape(rows, cols)
    side = max(1, cols // 3)
    blank, written = ink[:, -side:], ink[:, :side]
    if float(blank.max()) > 0.1 * float(written.mean()):
        raise PruneBoardError(
            f"the grid {rows} x {cols} is not that of the patches: a page with text at its left has ink at its right. "
            "Are rows and columns swapped?"
        )
    return f"{rows} x {cols}; ink where the text is"


CHECKS: dict[str, Callable[[Subject], str]] = {
    "every tensor": loaded_tensors,
    "revision": pinned_revision,
    "vectors of the library": same_vectors,
    "signals of eager attention": same_signals,
    "finite numbers": finite_numbers,
    "page alone and in a batch": page_alone,
    "query alone and in a batch": query_alone,
    "query tokens of MTEB": query_tokens,
    "page tokens of MTEB": page_tokens,
    "grid": grid_in_place,
}


def run_checks(backbone: Backbone) -> Iterator[Check]:
    """Every check, one after the other. Without its weights a backbone cannot be asked anything else."""
    subject = Subject(backbone)
    for name, ask in CHECKS.items():
        try:
            yield Check(name, PASSED, ask(subject))
        except NotPossibleError as reason:
            yield Check(name, NOT_DONE, str(reason))
        except Exception as error:  # whatever a backbone of one's own raises is what this check found
            yield Check(name, *verdict_of(error))
            if ask is loaded_tensors:
                yield from (Check(other, NOT_DONE, "the model could not be loaded") for other in list(CHECKS)[1:])
                return


def verdict_of(error: Exception) -> tuple[str, str]:
    """What an error says of a backbone: that it failed, unless this machine is too small for it."""
    if isinstance(error, PruneBoardError):
        return FAILED, str(error)
    told = f"{type(error).__name__}: {str(error)[:500]}"
    return NOT_DONE if is_out_of_memory(error) else FAILED, told


def _listed(subject: Subject) -> EngineBackbone:
    if subject.of_library.mteb_model is None:
        raise NotPossibleError("MTEB has no wrapper for this family")
    return subject.engine


def _same_ids(backbone: EngineBackbone, ours: Any, theirs: Any, what: str) -> str:
    mine, other = (_ids(inputs) for inputs in (ours, theirs))
    for a, b in zip(mine, other, strict=True):
        if a != b:
            here, there = (backbone.processor.tokenizer.decode(_one_image(backbone, ids)) for ids in (a, b))
            raise PruneBoardError(f"{what} are not MTEB's: {here!r} here, {there!r} there")
    return f"{sum(map(len, mine))} token ids of {len(mine)} {what}, equal"


def _ids(inputs: Any) -> list[list[int]]:
    return [row[mask.bool()].tolist() for row, mask in zip(inputs["input_ids"], inputs["attention_mask"], strict=True)]


def _one_image(backbone: EngineBackbone, ids: list[int]) -> list[int]:
    """Ids without the repetitions of the visual token, to be read by people."""
    image = getattr(backbone.config, "image_token_id", None)
    return [token for i, token in enumerate(ids) if token != image or i == 0 or ids[i - 1] != image]


def _apart(a: torch.Tensor, b: torch.Tensor) -> float:
    if a.shape != b.shape:
        raise PruneBoardError(f"shapes differ: {tuple(a.shape)} and {tuple(b.shape)}")
    for found in (a, b):
        _require_finite(found, "numbers that are compared")
    return float((a - b).abs().max())


def _require_finite(found: torch.Tensor, what: str) -> None:
    if not torch.isfinite(found).all():
        raise PruneBoardError(f"{int((~torch.isfinite(found)).sum())} of the {what} are NaN or infinite")


def _within(worst: float, tolerance: float, what: str) -> str:
    if not worst <= tolerance:
        raise PruneBoardError(f"{worst:.2g} {what}, at most {tolerance:g} is rounding")
    return f"at most {worst:.1g} {what}"
