"""A text decoder of a given shape with random weights: memory and time depend on its sizes, not on the values.

Token embeddings are left out (pages come in as vectors), and so are the vision tower and the projection, which all ways
of reading attention run alike.
"""

from __future__ import annotations

import harness.compat  # noqa: F401

import json
from dataclasses import asdict, dataclass
from typing import Any

VOCABULARY = 64
TOKEN_IDS = ("bos_token_id", "eos_token_id", "pad_token_id")  # beyond the small vocabulary, and not needed


@dataclass(frozen=True)
class Decoder:
    """`config` is transformers' own of a text decoder, as a dict; the rest says how it is run."""

    config: dict[str, Any]
    bidirectional: bool = False
    """All tokens of a page attend to all (ColPali), or to those before them."""
    device: str = "cpu"
    dtype: str = "float32"

    @classmethod
    def of(cls, text_config: Any, **how: Any) -> Decoder:
        """The shape of a backbone's text decoder."""
        fields = {**text_config.to_dict(), "vocab_size": VOCABULARY, **dict.fromkeys(TOKEN_IDS)}
        return cls(json.loads(json.dumps(fields, default=str)), **how)

    @classmethod
    def parse(cls, text: str) -> Decoder:
        return cls(**json.loads(text))

    def __str__(self) -> str:
        return json.dumps(asdict(self))

    @property
    def layers(self) -> int:
        return self.config["num_hidden_layers"]

    @property
    def heads(self) -> int:
        return self.config["num_attention_heads"]

    @property
    def hidden(self) -> int:
        return self.config["hidden_size"]

    def shape(self) -> dict[str, Any]:
        """What of it determines memory and time."""
        names = ("model_type", "num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads")
        found = {name: self.config.get(name) for name in (*names, "head_dim", "intermediate_size")}
        found["head_dim"] = found["head_dim"] or self.hidden // self.heads
        attention = "bidirectional" if self.bidirectional else "causal"
        return {**found, "attention": attention, "device": self.device, "dtype": self.dtype, "weights": "random"}

    def weight_bytes(self) -> int:
        """Of the model, without making it."""
        import torch

        with torch.device("meta"):
            model = self._model("sdpa")
        return sum(p.numel() for p in model.parameters()) * getattr(torch, self.dtype).itemsize

    def build(self, attention: str) -> Any:
        """The model on its device. Same weights every time."""
        import torch

        torch.manual_seed(0)
        with torch.device(self.device):
            return self._model(attention).eval()

    def _model(self, attention: str) -> Any:
        import torch
        from transformers import AutoConfig, AutoModel

        config = AutoConfig.for_model(**self.config)
        return AutoModel.from_config(config, attn_implementation=attention, dtype=getattr(torch, self.dtype))


QWEN2_VL = Decoder(
    {
        "model_type": "qwen2_vl_text",
        "vocab_size": VOCABULARY,
        "hidden_size": 512,
        "intermediate_size": 1408,
        "num_hidden_layers": 12,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [8, 12, 12]},
        **dict.fromkeys(TOKEN_IDS),
    }
)
"""Of Qwen2-VL's kind, small enough for any machine: what `harness bench capture` runs."""
