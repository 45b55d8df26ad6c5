"""Retrievers of other libraries, for their vectors alone: `mteb:ID` by mteb's wrapper, `st:ID` (sentence-transformers).

    mteb:nomic-ai/colnomic-embed-multimodal-3b     any late-interaction model that mteb lists, at mteb's revision
    mteb:vidore/colqwen2-v1.0=./my_finetune        another checkpoint through the wrapper of a listed model
    st:owner/name, st:./folder                     a `MultiVectorEncoder` of sentence-transformers

A page is all the vectors that the library indexes; patches and prompt are not told apart, there is no grid and no
signal, and methods that need one are refused by name. Queries go through one by one: some wrappers give a query other
vectors beside a longer one.
"""

from __future__ import annotations

import harness.compat  # noqa: F401

import contextlib
import io
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from harness.backbones.base import SMALL, choose_device, choose_dtype
from harness.backbones.checkpoint import CheckpointError, content_hash
from harness.backbones.contract import TEXT_TOKENS, VISUAL, Card, Options, backbone
from harness.backbones.engine_weights import quiet_transformers
from harness.store.encoded_page import EncodedPage
from pruners.core.errors import PruneBoardError

TASK = "VidoreTabfquadRetrieval"
"""A task of the kind that is evaluated: some wrappers choose a prompt by it."""


INSTEAD = {
    "vidore/colqwen-omni-v0.1": "builds colpali-engine's class, which fails with the installed transformers "
    "('ColQwen2_5Omni' object has no attribute 'visual'); use --backbone colqwen-omni, which mends it"
}
"""Models that mteb lists and whose wrapper cannot run, and what can."""


class OneBatch(list):
    """One batch, as mteb's wrappers look at a data loader."""

    def __init__(self, column: str, values: Sequence[Any]) -> None:
        super().__init__([{column: list(values)}])
        self.dataset = SimpleNamespace(features={column: None})


class VectorsOnly:
    """What both kinds share. A subclass loads `model` and encodes a list of pages or queries."""

    token_layout = "all tokens that the library indexes, patches and prompt not told apart"
    kind = VISUAL

    def __init__(self, name: str, checkpoint: str, revision: str, options: Options) -> None:
        if options.max_visual_tokens is not None:
            raise PruneBoardError(f"{name}: the library chooses the resolution; --max-visual-tokens cannot be had")
        self.name, self.checkpoint_name, self.revision, self.options = name, checkpoint, revision, options
        self.device = choose_device(options.device)
        self.dtype = choose_dtype(options.dtype, self.device, SMALL)

    @cached_property
    def model(self) -> Any:
        raise NotImplementedError

    def vectors(self, values: Sequence[Any], *, query: bool) -> list[torch.Tensor]:
        raise NotImplementedError

    @cached_property
    def card(self) -> Card:
        """The dimension is what the model gives: what is written of it elsewhere is not always so."""
        (probe,) = self.encode_queries(["a"])
        return Card(
            name=self.name,
            checkpoint=self.checkpoint_name,
            revision=self.revision,
            layers=0,
            heads=0,
            dim=probe.shape[1],
            dtype=str(self.dtype).removeprefix("torch."),
            signals=(),
            signals_from="nothing",
            page_prompt="the library's own",
            token_layout=self.token_layout,
            eos_token="",
            query_template="the library's own",
            kind=self.kind,
        )

    @torch.inference_mode()
    def encode_pages(self, pages: Sequence[Any]) -> list[EncodedPage]:
        return [EncodedPage(vectors=vectors) for vectors in self.vectors(pages, query=False)]

    @torch.inference_mode()
    def encode_queries(self, texts: Sequence[str]) -> list[torch.Tensor]:
        return [vectors for text in texts for vectors in self.vectors([text], query=True)]


class MtebModel(VectorsOnly):
    """A late-interaction model through mteb's own wrapper."""

    def __init__(self, meta: Any, folder: str | None, options: Options) -> None:
        revision = content_hash(Path(folder)) if folder else options.revision or meta.revision
        super().__init__(f"mteb:{meta.name}", folder or meta.name, revision, options)
        self.meta, self.folder = meta, folder

    @cached_property
    def model(self) -> Any:
        meta = self.meta.model_copy(update={"revision": None if self.folder else self.revision})
        chosen = {name: self.dtype for name in ("torch_dtype", "dtype") if name in meta.loader_kwargs}
        with _explained(self.name), _quiet():
            if self.folder:  # mteb would check the name
                return meta.loader(
                    self.folder, revision=None, device=str(self.device), **{**meta.loader_kwargs, **chosen}
                )
            return meta.load_model(device=str(self.device), **chosen)

    def vectors(self, values: Sequence[Any], *, query: bool) -> list[torch.Tensor]:
        import mteb
        from mteb.types import PromptType

        with _quiet():
            found = self.model.encode(
                OneBatch("text" if query else "image", values),
                task_metadata=mteb.get_task(TASK).metadata,
                hf_split="test",
                hf_subset="default",
                prompt_type=PromptType.query if query else PromptType.document,
                batch_size=len(values),
            )
        return [without_padding(torch.as_tensor(vectors).float().cpu()) for vectors in found]


class SentenceTransformer(VectorsOnly):
    """A `MultiVectorEncoder`: of pages if it reads images, else of their texts."""

    def __init__(self, checkpoint: str, options: Options) -> None:
        local = Path(checkpoint).expanduser().is_dir()
        revision = content_hash(Path(checkpoint).expanduser()) if local else options.revision or "main"
        super().__init__(f"st:{Path(checkpoint).name if local else checkpoint}", checkpoint, revision, options)
        self.hub_revision = None if local else options.revision

    @cached_property
    def model(self) -> Any:
        from sentence_transformers import MultiVectorEncoder

        with _explained(self.name), _quiet():
            return MultiVectorEncoder(
                self.checkpoint_name,
                revision=self.hub_revision,
                device=str(self.device),
                model_kwargs={"dtype": self.dtype},
            ).eval()

    @property
    def kind(self) -> str:  # type: ignore[override]
        return VISUAL if "image" in self.model.modalities else TEXT_TOKENS

    def vectors(self, values: Sequence[Any], *, query: bool) -> list[torch.Tensor]:
        encode = self.model.encode_query if query else self.model.encode_document
        found = encode(list(values), batch_size=max(1, len(values)), show_progress_bar=False)
        return [torch.as_tensor(vectors).float().cpu() for vectors in found]


def without_padding(vectors: torch.Tensor) -> torch.Tensor:
    """mteb fills pages of a batch up with zero vectors, on either side; a real vector has a direction."""
    return vectors[vectors.norm(dim=-1) > 0]


def listed(metas: Iterable[Any]) -> list[Any]:
    """The late-interaction models that read images, of all that mteb lists."""
    return [
        meta for meta in metas if "image" in (meta.modalities or []) and "late-interaction" in (meta.model_type or [])
    ]


@contextlib.contextmanager
def _explained(name: str) -> Iterator[None]:
    """A library that cannot load a model has a reason; it is the user's to mend, so it is told in a sentence."""
    try:
        yield
    except (ImportError, OSError, ValueError, AttributeError, RuntimeError, TypeError) as error:
        first = str(error).strip().splitlines()[0][:300] if str(error).strip() else "no reason given"
        raise CheckpointError(f"{name} cannot be loaded: {type(error).__name__}: {first}") from error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with quiet_transformers(), contextlib.redirect_stderr(io.StringIO()):  # progress bars of the libraries
        yield


@backbone("mteb", checkpoint="", signals=())
def load_mteb(checkpoint: str, options: Options) -> MtebModel:
    """Any late-interaction model that mteb lists: mteb:ID."""
    import difflib

    import mteb

    name, _, folder = checkpoint.partition("=")
    known = {str(meta.name): meta for meta in listed(mteb.get_model_metas())}
    if name not in known:
        near = difflib.get_close_matches(name, known, n=2, cutoff=0.4)
        hint = f"did you mean {' or '.join(near)}?" if near else "docs/mteb-models.md lists them"
        raise PruneBoardError(f"mteb lists no visual late-interaction model {name!r}; {hint}")
    if name in INSTEAD:
        raise PruneBoardError(f"mteb's wrapper of {name} {INSTEAD[name]}")
    if folder and not Path(folder).expanduser().is_dir():
        raise CheckpointError(f"there is no folder {folder!r}")
    return MtebModel(known[name], folder or None, options)


@backbone("st", checkpoint="", signals=())
def load_st(checkpoint: str, options: Options) -> SentenceTransformer:
    """Any `MultiVectorEncoder` of sentence-transformers: st:ID or st:FOLDER."""
    return SentenceTransformer(checkpoint, options)
