"""The base that all colpali-engine models share: device and dtype, one probed forward pass, results split by page.

A subclass says how its page prompt is made, where its patches lie, and what its query template is. Nothing is
hard-coded that the checkpoint's own config or processor states.
"""

from __future__ import annotations

import harness.compat  # noqa: F401

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import torch
from PIL import Image

from harness.backbones.checkpoint import Checkpoint, CheckpointError, find_rows, rows_of_weight
from harness.backbones.contract import Card, Options
from harness.backbones.engine_weights import load_engine_model
from harness.backbones.prepared import Empty, Prepared, side_by_side
from harness.backbones.probe import ATTENTION_SIGNALS, attach, capturing
from harness.store.encoded_page import EncodedPage
from pruners.core.errors import PruneBoardError

SMALL = 512  # width of layers below which two threads take longer than one each in two processes
LINEAR = "linear_attention"
"""transformers' name of a layer that mixes tokens by a recurrence, so that no token attends to another."""
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def choose_device(name: str | None) -> torch.device:
    """The device asked for, or the best there is."""
    if name is not None:
        try:
            device = torch.device(name)
        except RuntimeError as error:
            raise PruneBoardError(f"{name!r} is no device; use cuda, cuda:1, mps or cpu") from error
        return _present(device)
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def _present(device: torch.device) -> torch.device:
    """The device, if this machine and this build of torch have it."""
    count = {"cuda": torch.cuda.device_count(), "mps": int(torch.backends.mps.is_available())}.get(device.type, 1)
    if (device.index or 0) < count:
        return device
    if device.type == "cuda" and torch.version.cuda is None and torch.version.hip is None:
        why = f"torch {torch.__version__} is a build for the CPU; install one for CUDA (https://pytorch.org)"
    else:
        why = f"torch sees {count} {device.type} device(s)" + (": is the driver running?" if count == 0 else "")
    raise PruneBoardError(f"there is no device {str(device)!r} here: {why}. `--device cpu` works everywhere")


def choose_dtype(name: str | None, device: torch.device, width: int) -> torch.dtype:
    """bfloat16 on a GPU, and on a CPU with instructions for it if the layers are wide enough to gain by it.

    On other CPUs half-precision products are many times slower than those in float32.
    """
    if name is None:
        native = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
        fast = device.type != "cpu" or (native and width > SMALL)
        return torch.bfloat16 if fast else torch.float32
    if name not in DTYPES:
        raise PruneBoardError(f"{name!r} is no dtype for a backbone; use {', '.join(DTYPES)}")
    return DTYPES[name]


class EngineBackbone:
    """A colpali-engine model and its processor behind the harness' protocol."""

    query_prefix: ClassVar[str] = "Query: "
    query_suffix_tokens: ClassVar[int] = 10
    """MTEB's template of these retrievers: prefix, text, ten augmentation tokens."""
    projection: ClassVar[str] = "custom_text_proj.weight"
    """The weight whose rows are the output dimensions."""
    unused: ClassVar[tuple[str, ...]] = ()
    """Modules of the network that vectors do not depend on: files need not have them."""
    mteb_model: ClassVar[str | None] = None
    """A model of this family that MTEB lists: its wrapper says how queries and pages are written."""
    no_stock_path: ClassVar[str] = ""
    """Why the library's own model and MTEB's wrapper cannot run here, if they cannot."""
    token_layout: ClassVar[str]
    signals_from: ClassVar[str] = "the retriever's own text decoder, all layers"

    def __init__(self, name: str, checkpoint: Checkpoint, options: Options, known: Card | None = None) -> None:
        """`known` is the card of one checkpoint, written down: if it is this one, nothing is loaded to find a store."""
        self.name, self.checkpoint, self.options = name, checkpoint, options
        self.device = choose_device(options.device)
        self.known: Card | None = None
        if known is not None and known.revision == checkpoint.identity and options.max_visual_tokens is None:
            self.dtype = choose_dtype(options.dtype, self.device, width=0)  # a known one is small
            self.known = replace(known, checkpoint=checkpoint.name, dtype=self.dtype_name)
        else:
            self.dtype = choose_dtype(options.dtype, self.device, self.text_config.hidden_size)
            _ = self.processor  # what is wrong with its files is said before any work
        if options.max_visual_tokens is not None:
            self.limit_visual_tokens(options.max_visual_tokens)

    @cached_property
    def processor(self) -> Any:
        return self.load_processor()

    @cached_property
    def model(self) -> Any:
        """Loaded when first used: a finished store is found by the card alone, without gigabytes of weights."""
        if self.known is not None and self.known != (stated := self.stated_card()):
            raise CheckpointError(
                f"{self.name} is known as {self.known}, but with the libraries installed here it is {stated}: a store "
                "would not hold what its key says. Install the colpali-engine and transformers of the last release"
            )
        model = self.load_model().to(self.device).eval()
        attach(model)
        return model

    # What a subclass provides.

    @staticmethod
    def classes() -> tuple[Any, Any]:
        """colpali-engine's classes of the model and of its processor."""
        raise NotImplementedError

    def limit_visual_tokens(self, limit: int) -> None:
        raise NotImplementedError

    def grid_and_ink(self, inputs: Any, page: int) -> tuple[tuple[int, int] | None, torch.Tensor]:
        """The patch grid of a page (None if its patches form no rectangle), and the ink of each visual token."""
        raise NotImplementedError

    def page_inputs(self, images: Sequence[Image.Image]) -> Any:
        return self.processor.process_images(list(images))

    def visual_tokens(self, inputs: Any) -> torch.Tensor:
        """Which tokens are patches, `[B, T]`."""
        return self.processor.get_image_mask(inputs).bool()

    def query_inputs(self, texts: Sequence[str]) -> Any:
        return self.processor.process_texts([self.query_text(text) for text in texts])

    # What they share.

    def config_class(self) -> Any:
        return self.classes()[0].config_class

    def load_model(self) -> Any:
        network = _of_dim(self.classes()[0], self.projection, find_rows(self.checkpoint, self.projection))
        return load_engine_model(network, self.checkpoint, self.dtype, unused=self.unused)

    def load_processor(self) -> Any:
        return self.classes()[1].from_pretrained(str(self.checkpoint.folder), local_files_only=True)

    def query_text(self, text: str) -> str:
        augmentation = self.processor.query_augmentation_token if self.query_suffix_tokens else ""
        return self.query_prefix + text + augmentation * self.query_suffix_tokens

    @cached_property
    def config(self) -> Any:
        return self.config_class().from_pretrained(str((self.checkpoint.base or self.checkpoint).folder))

    @property
    def text_config(self) -> Any:
        return self.config.get_text_config()

    @cached_property
    def card(self) -> Card:
        return self.known or self.stated_card()

    def stated_card(self) -> Card:
        """The card as config, processor and weights state it."""
        prompt = self.page_inputs([Image.new("RGB", (64, 64), "white")])
        last = int(prompt["input_ids"][0][prompt["attention_mask"][0].bool()][-1])
        return Card(
            name=self.name,
            checkpoint=self.checkpoint.name,
            revision=self.checkpoint.identity,
            layers=len(self.attention_layers),
            heads=self.text_config.num_attention_heads,
            dim=rows_of_weight(self.checkpoint, self.projection),
            dtype=self.dtype_name,
            signals=(*ATTENTION_SIGNALS, "ink"),
            signals_from=self._signals_from(),
            page_prompt=self.page_prompt,
            token_layout=self.token_layout,
            eos_token=f"{self.processor.tokenizer.convert_ids_to_tokens(last)!r} (id {last})",
            query_template=self.query_template,
            max_visual_tokens=self.options.max_visual_tokens,
            attention_layers=self.attention_layers if len(self.attention_layers) < self._depth else None,
        )

    @property
    def _depth(self) -> int:
        return self.text_config.num_hidden_layers

    @property
    def attention_layers(self) -> tuple[int, ...]:
        """The layers of the decoder that have attention maps: not all layers of a hybrid decoder do."""
        kinds = getattr(self.text_config, "layer_types", None) or ["full_attention"] * self._depth
        return tuple(layer for layer, kind in enumerate(kinds) if kind != LINEAR)

    def _signals_from(self) -> str:
        if len(self.attention_layers) == self._depth:
            return self.signals_from
        return (
            f"the retriever's own text decoder, the {len(self.attention_layers)} of its {self._depth} layers that have "
            "attention maps"
        )

    @property
    def dtype_name(self) -> str:
        return str(self.dtype).removeprefix("torch.")

    @property
    def one_thread(self) -> bool:
        """Whether its layers are too small to share among threads, so that pages are shared among processes instead."""
        return self.device.type == "cpu" and self.text_config.hidden_size <= SMALL

    @property
    def attention_path(self) -> str:
        sums = (
            "tiles from the flash kernel's log-sum-exp" if self.device.type == "cpu" else "row blocks of whole batches"
        )
        return f"SDPA; column sums in float32 by {sums}"

    @property
    def query_template(self) -> str:
        return self.query_text("{query}")

    @property
    def page_prompt(self) -> str:
        return self.processor.visual_prompt_prefix

    def encode_pages(self, images: Sequence[Image.Image]) -> list[EncodedPage]:
        return self.encode_prepared(self.prepare(images))

    def prepare(self, images: Sequence[Image.Image]) -> Prepared:
        """All that needs no model: resized and normalised pixels, the prompt, grids and ink."""
        inputs = self.page_inputs(images)
        return Prepared(inputs, tuple(self.grid_and_ink(inputs, page) for page in range(len(images))))

    def side_by_side(self, pages: Sequence[Prepared], empty: Empty) -> Prepared:
        """Pages that were prepared one by one as one batch, equal to what `prepare` makes of all of them."""
        return side_by_side(pages, self.processor.tokenizer, empty)

    @torch.inference_mode()
    def encode_prepared(self, prepared: Prepared) -> list[EncodedPage]:
        inputs = prepared.inputs
        visual, valid = self.visual_tokens(inputs), inputs["attention_mask"].bool()
        with capturing(visual.to(self.device), valid.to(self.device)) as recorder:
            vectors = self.model(**self._to_device(inputs)).float().cpu()
        signals = recorder.signals(self.attention_layers)
        pages = []
        for page, (grid, ink) in enumerate(prepared.places):
            pages.append(
                EncodedPage(
                    vectors=vectors[page][visual[page] & valid[page]],
                    grid=grid,
                    signals={**signals[page], "ink": ink},
                    prompt=vectors[page][~visual[page] & valid[page]],
                )
            )
        return pages

    @torch.inference_mode()
    def encode_queries(self, texts: Sequence[str]) -> list[torch.Tensor]:
        inputs = self.query_inputs(texts)
        vectors = self.model(**self._to_device(inputs)).float().cpu()
        return [vectors[row][mask] for row, mask in enumerate(inputs["attention_mask"].bool())]

    def _to_device(self, inputs: Any) -> dict[str, torch.Tensor]:
        return {name: tensor.to(self.device, non_blocking=True) for name, tensor in inputs.items()}


def _of_dim(model_class: Any, projection: str, dim: int | None) -> Any:
    """The engine's class with the output dimension of a checkpoint; it has one of its own, whatever the files hold."""

    class AnyDim(model_class):
        def __init__(self, config: Any, **kwargs: Any) -> None:
            super().__init__(config, **kwargs)
            name = projection.removesuffix(".weight")
            own = getattr(self, name)
            if dim is not None and own.out_features != dim:
                self.dim = dim
                setattr(self, name, torch.nn.Linear(own.in_features, dim, bias=own.bias is not None))

    AnyDim.__name__ = model_class.__name__
    return AnyDim
