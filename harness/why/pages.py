"""The pages of a data set twice over: as they were encoded, and as they look."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch

from harness.benchmarks.data_set import DataSet
from harness.store.reader import Store
from harness.why.canvas import PageCanvas, canvas_of, in_lines
from harness.why.page_view import DrawnQuery
from harness.why.tokens import numbered, page_spans, query_tokens
from pruners import Page
from pruners.core.errors import PruneBoardError

if TYPE_CHECKING:
    from harness.backbones.contract import Backbone


@dataclass(frozen=True)
class Pages:
    """A data set with its store. Without one (None) a page is encoded when it is asked for, alone."""

    data_set: DataSet
    store: Store | None
    load: Callable[[], Backbone]
    """The backbone, for words and tiles; it need not be there where a store is."""
    native: bool = False
    """Whether prompt vectors are indexed beside the page's."""

    @cached_property
    def backbone(self) -> Any:
        return self.load()

    @cached_property
    def no_backbone(self) -> str | None:
        """Why the backbone cannot be loaded, if so."""
        try:
            _ = self.backbone
        except (PruneBoardError, OSError) as error:
            return str(error)
        return None

    def index(self, page_id: str) -> int:
        if page_id in self._index:
            return self._index[page_id]
        some = ", ".join(self.data_set.page_ids[:5])
        raise PruneBoardError(
            f"{self.data_set.name} has no page {page_id!r}; it has {len(self._index)}, the first are {some}"
        )

    def page(self, index: int) -> Page:
        if self.store is not None:
            return self.store.page(index)
        encoded = self._encoded(index)
        # in half precision and back, as a store would give it
        return Page(self.data_set.page_ids[index], encoded.vectors.half().float(), encoded.grid, dict(encoded.signals))

    def prompt(self, index: int) -> torch.Tensor | None:
        """Vectors that are indexed beside a page's."""
        if not self.native:
            return None
        if self.store is not None:
            return self.store.prompt(index)
        return self._encoded(index).prompt.half().float()

    def query(self, query_id: str) -> DrawnQuery:
        """A query of the data set."""
        text = self.data_set.queries[query_id]
        vectors = self.query_vectors(query_id)
        if self.no_backbone is not None:
            return DrawnQuery(query_id, text, vectors, numbered(len(vectors)))
        return DrawnQuery(query_id, text, vectors, query_tokens(self.backbone, text, len(vectors)))

    def query_vectors(self, query_id: str) -> torch.Tensor:
        if self.store is not None:
            return self.store.query(self._queries[query_id])
        return self._encode_query(self.data_set.queries[query_id])

    def own_query(self, text: str) -> DrawnQuery:
        """A query that is not of the data set."""
        vectors = self._encode_query(text)
        return DrawnQuery("", text, vectors, query_tokens(self.backbone, text, len(vectors)))

    def gold_queries(self, page_id: str) -> list[str]:
        """The queries for which a page is relevant."""
        return [query for query, pages in self.data_set.qrels.items() if pages.get(page_id, 0) > 0]

    def canvas(self, index: int, page: Page, longest: int) -> PageCanvas:
        """How a page looks, at most so many pixels long."""
        if self._reads_text:
            text = (self.data_set.texts or ())[index]
            return in_lines(text, page_spans(self.backbone, text, len(page)))
        image = self.data_set.image(index)
        tiles = self._tiles(image) if page.grid is None else None
        return canvas_of(page, image, tiles, longest)

    def _tiles(self, image: Any) -> tuple[tuple[int, int], int] | None:
        """Rows and columns of tiles, and the vectors along a tile's side, of a backbone that cuts pages into tiles."""
        from harness.backbones.colidefics3 import ColIdefics3Backbone

        if not isinstance(self.backbone, ColIdefics3Backbone):
            return None
        processor = self.backbone.processor
        cut = processor.image_processor([image], return_row_col_info=True, return_tensors="pt")
        return (int(cut["rows"][0][0]), int(cut["cols"][0][0])), round(processor.image_seq_len**0.5)

    @property
    def _reads_text(self) -> bool:
        from harness.backbones.contract import TEXT_TOKENS

        if self.store is not None:
            return self.store.manifest.identity["backbone"].get("kind") == TEXT_TOKENS
        return self.backbone.card.kind == TEXT_TOKENS

    def _encoded(self, index: int) -> Any:
        from harness.encode import page_reader

        if index not in self._known:
            page, _ = page_reader(self.backbone, self.data_set)(index)
            self._known[index] = self.backbone.encode_pages([page])[0]
        return self._known[index]

    def _encode_query(self, text: str) -> torch.Tensor:
        return self.backbone.encode_queries([text])[0].half().float()

    @cached_property
    def _known(self) -> dict[int, Any]:
        return {}

    @cached_property
    def _index(self) -> dict[str, int]:
        return {page: i for i, page in enumerate(self.data_set.page_ids)}

    @cached_property
    def _queries(self) -> dict[str, int]:
        assert self.store is not None
        return {query: i for i, query in enumerate(self.store.query_ids)}
