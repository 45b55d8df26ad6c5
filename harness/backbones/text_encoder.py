"""Text encoders as late-interaction retrievers: the tokens of a page's text take the place of patches.

A vector a token (last hidden state, through the checkpoint's projections if it has any, unit norm). Special tokens and
markers are not indexed; the last of them (`[SEP]`) gives the `eos` signal. Pages beyond the encoder's limit are read in
overlapping windows; a token's vector and signals come from the same window. Two signals say what a token is: its number
in the vocabulary (`token`), and whether it belongs to a stop word (`stopword`).
"""

from __future__ import annotations

import harness.compat  # noqa: F401

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch

from harness.backbones.base import SMALL, choose_device, choose_dtype
from harness.backbones.checkpoint import Checkpoint, CheckpointError
from harness.backbones.contract import TEXT_TOKENS, Card, Options
from harness.backbones.engine_weights import load_text_encoder
from harness.backbones.late_interaction import read_late_interaction
from harness.backbones.probe import ATTENTION_SIGNALS, attach_encoder, capturing
from harness.backbones.stop_words import stop_words
from harness.backbones.text_windows import Piece, pieces_of
from harness.store.encoded_page import EncodedPage
from pruners.core.errors import PruneBoardError

LONGEST = 512
"""The longest window: BERT's limit. Encoders that could read more were mostly trained on less."""
COUNT_POSITIONS_FROM_PADDING = ("camembert", "mpnet", "roberta", "xlm-roberta")


class TextBackbone:
    """A BERT-like encoder behind the harness' protocol. `encode_pages` takes texts."""

    attention_path = "SDPA; column sums in float32 by tiles from the flash kernel's log-sum-exp (elsewhere: row blocks)"

    def __init__(self, name: str, checkpoint: Checkpoint, options: Options) -> None:
        from transformers import AutoConfig, AutoTokenizer

        if options.max_visual_tokens is not None:
            raise PruneBoardError(f"{name} reads text: it has no visual tokens to limit (--max-visual-tokens)")
        if checkpoint.base is not None:
            raise CheckpointError(
                f"checkpoint {checkpoint.name!r} is a LoRA adapter, which text encoders are not read from; "
                "merge it into its base model and use that"
            )
        self.name, self.checkpoint = name, checkpoint
        self.device = choose_device(options.device)
        self.config = AutoConfig.from_pretrained(str(checkpoint.folder), local_files_only=True)
        self.dtype = choose_dtype(options.dtype, self.device, self.config.hidden_size)
        self.tokenizer = AutoTokenizer.from_pretrained(str(checkpoint.folder), local_files_only=True)
        self.use = read_late_interaction(checkpoint.folder, self.tokenizer)
        self.before, self.after = self._special_tokens()

    @property
    def one_thread(self) -> bool:
        """As with the visual backbones: a small encoder shares pages among processes, not layers among threads."""
        return self.device.type == "cpu" and self.config.hidden_size <= SMALL

    @cached_property
    def model(self) -> Any:
        """Loaded when first used, as with the visual backbones."""
        model = load_text_encoder(self.checkpoint, self.dtype).to(self.device).eval()
        attach_encoder(model)
        return model

    @cached_property
    def card(self) -> Card:
        last = [*self.before, *self.after][-1:]
        layout = [*map(self._token, self._head(self.use.page_marker)), "text", *map(self._token, self.after)]
        return Card(
            name=self.name,
            checkpoint=self.checkpoint.name,
            revision=self.checkpoint.identity,
            layers=self.config.num_hidden_layers,
            heads=self.config.num_attention_heads,
            dim=len(self.use.projections[-1]) if self.use.projections else self.config.hidden_size,
            dtype=str(self.dtype).removeprefix("torch."),
            signals=(*ATTENTION_SIGNALS, "token", *(["stopword"] if self.tokenizer.is_fast else [])),
            signals_from="the encoder itself, all layers",
            page_prompt="" if self.use.page_marker is None else self._token(self.use.page_marker),
            token_layout=f"{' '.join(layout)}, bidirectional; overlapping windows of {self.window_size} tokens",
            eos_token="".join(f"{self._token(token)!r} (id {token})" for token in last),
            query_template=self.use.query_template(self._token),
            kind=TEXT_TOKENS,
        )

    @property
    def window_size(self) -> int:
        """How many tokens one window holds, special ones included."""
        limit = getattr(self.config, "max_position_embeddings", None) or LONGEST
        if self.config.model_type in COUNT_POSITIONS_FROM_PADDING:
            limit -= self.config.pad_token_id + 1
        return min(limit, LONGEST)

    @torch.inference_mode()
    def encode_pages(self, texts: Sequence[str]) -> list[EncodedPage]:
        # A page at a time: the windows of a page have one length, so nothing is padded.
        return [self._encode_page(text) for text in texts]

    def _encode_page(self, text: str) -> EncodedPage:
        pieces = self._pieces(text, self.use.page_marker, self.use.skipped)
        ids, own, taken = (self._padded(pieces, what) for what in ("ids", "own", "taken"))
        words = {"token": ids[taken].float()[None]}  # exact: vocabularies are far below 2^24
        if self.tokenizer.is_fast:  # others do not know which word a token is a piece of
            words["stopword"] = self._stop_words(text)
        valid = torch.ones_like(own)
        with capturing(own.to(self.device), valid.to(self.device)) as recorder:
            vectors = self._vectors(ids, valid)
        signals = recorder.signals(range(self.config.num_hidden_layers))
        rows = range(len(pieces))
        return EncodedPage(
            vectors=vectors[taken],
            signals={
                name: torch.cat([signals[row][name][:, taken[row][own[row]]] for row in rows], dim=1)
                for name in ATTENTION_SIGNALS
            }
            | words,
            prompt=vectors[~own],
        )

    def _stop_words(self, text: str) -> torch.Tensor:
        """Which of a page's tokens belong to stop words: those that are indexed, in their order."""
        tokens = self._tokens(text)
        flags = zip(tokens["input_ids"], stop_words(text, tokens), strict=True)
        indexed = [idle for number, idle in flags if number not in self.use.skipped]
        return torch.tensor([indexed or [True]]).float()  # a page without text has one vector, of no word

    @torch.inference_mode()
    def encode_queries(self, texts: Sequence[str]) -> list[torch.Tensor]:
        queries = []
        for text in texts:
            pieces = self._pieces(text, self.use.query_marker)
            if not any(piece.has_text for piece in pieces):
                raise PruneBoardError(f"{self.name} finds no token in the query {text!r}")
            queries.append([self.use.as_query(piece) for piece in pieces])
        flat = [piece for query in queries for piece in query]
        vectors = self._vectors(self._padded(flat, "ids"), self._padded(flat, "attended"))
        taken = self._padded(flat, "taken")
        found, row = [], 0
        for query in queries:
            found.append(torch.cat([vectors[r][taken[r]] for r in range(row, row + len(query))]))
            row += len(query)
        return found

    def _pieces(self, text: str, marker: int | None, skipped: frozenset[int] = frozenset()) -> list[Piece]:
        tokens = self._tokens(text)["input_ids"]
        return pieces_of(tokens, self._head(marker), self.after, self.window_size, skipped)

    def _tokens(self, text: str) -> Any:
        return self.tokenizer(text, add_special_tokens=False, truncation=False, padding=False, verbose=False)

    def _vectors(self, ids: torch.Tensor, attended: torch.Tensor) -> torch.Tensor:
        """Unit vectors `[B, T, d]` on the CPU."""
        given = {"input_ids": ids.to(self.device), "attention_mask": attended.long().to(self.device)}
        vectors = self.model(**given).last_hidden_state.float()
        for projection in self.use.projections:
            vectors = vectors @ projection.to(vectors).T
        return torch.nn.functional.normalize(vectors, dim=-1).cpu()

    def _padded(self, pieces: Sequence[Piece], what: str) -> torch.Tensor:
        """One field of all pieces as a tensor, filled up on the right."""
        kind = torch.long if what == "ids" else torch.bool
        fill = (self.tokenizer.pad_token_id or 0) if what == "ids" else 0
        rows = torch.full((len(pieces), max(len(piece.ids) for piece in pieces)), fill, dtype=kind)
        for row, piece in enumerate(pieces):
            rows[row, : len(piece.ids)] = torch.tensor(getattr(piece, what), dtype=kind)
        return rows

    def _head(self, marker: int | None) -> tuple[int, ...]:
        return self.before if marker is None else (*self.before, marker)

    def _special_tokens(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """What the tokenizer puts before and after a text."""
        bare = self.tokenizer("a", add_special_tokens=False)["input_ids"]
        full = self.tokenizer("a")["input_ids"]
        at = next(i for i in range(len(full)) if full[i : i + len(bare)] == bare)
        return tuple(full[:at]), tuple(full[at + len(bare) :])

    def _token(self, token: int) -> str:
        return str(self.tokenizer.convert_ids_to_tokens(token))
