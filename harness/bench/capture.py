"""What capturing attention costs: four ways over the same random decoder, each measured in a process of its own.

The decoder is Qwen2-VL's (12 layers, hidden 512, 8 heads, 2 key-value heads), fed one page: all tokens visual except a
prompt. The vision tower is left out, since all ways run it alike and it would only flatter the ratios.
"""

from __future__ import annotations

import harness.compat  # noqa: F401

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

from harness.progress import Progress, quiet
from pruners.core.errors import PruneBoardError

LENGTHS, LONG = (1024, 3072, 6144), 12288
LAYERS, HIDDEN, HEADS, KV_HEADS, MLP = 12, 512, 8, 2, 1408
PROMPT = 14
WARM_UP = 256
WAYS = {
    "sdpa": "plain SDPA",
    "ours": "ours, streaming",
    "eager-layer": "eager, a layer at a time",
    "eager-all": "eager, all maps kept",
}
CLOSE = ["sdpa", "ours"]

COLUMNS = {
    "tokens": "tokens",
    "way": "way",
    "seconds": "CPU s",
    "seconds_ratio": "x",
    "peak_mb": "peak MB",
    "peak_mb_ratio": "x",
    "extra_mb": "extra MB",
    "extra_mb_ratio": "x",
    "note": "",
}


def measure(lengths: Sequence[int], *, repeats: int, threads: int, progress: Progress = quiet) -> list[dict[str, Any]]:
    """One row a length and way, with ratios to plain SDPA.

    Plain SDPA and ours alternate `repeats` times and the fastest of each counts, so that a machine busy with other
    things treats them alike; the eager ways are far behind and run once.
    """
    rows = []
    with progress("measurements", total=len(lengths) * (2 * repeats + len(WAYS) - 2), done=0) as advance:
        for tokens in lengths:
            runs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
            notes: dict[str, str] = {}
            for way in [*CLOSE * repeats, *(way for way in WAYS if way not in CLOSE)]:
                need, free = _memory_needed(way, tokens), _free_memory()
                if need > 0.85 * free:
                    notes[way] = f"not run: needs about {need / 2**30:.0f} GB of {free / 2**30:.0f} GB free"
                else:
                    runs[way].append(_in_own_process(way, tokens, threads))
                advance(1)
            for way, title in WAYS.items():
                row: dict[str, Any] = {"tokens": tokens, "way": title}
                if runs[way]:
                    row |= _summary(runs[way])
                    plain = _summary(runs["sdpa"])
                    row |= {f"{name}_ratio": round(row[name] / plain[name], 2) for name in plain}
                rows.append({**row, "note": notes.get(way, "")})
    return rows


def _summary(runs: Sequence[dict[str, float]]) -> dict[str, float]:
    """The fastest of the runs, and the largest memory of any."""
    return {
        "seconds": min(run["seconds"] for run in runs),
        "peak_mb": max(run["peak_mb"] for run in runs),
        "extra_mb": max(run["extra_mb"] for run in runs),
    }


def run_one(way: str, tokens: int, threads: int) -> dict[str, float]:
    """Build the decoder and run it once, one way: CPU seconds of the pass, and the peak of the process."""
    import torch
    from transformers import Qwen2VLTextConfig
    from transformers.models.qwen2_vl.modeling_qwen2_vl import Qwen2VLTextModel

    from harness.backbones import probe

    if threads:
        torch.set_num_threads(threads)
    torch.manual_seed(0)
    config = Qwen2VLTextConfig(
        vocab_size=64,
        hidden_size=HIDDEN,
        intermediate_size=MLP,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=KV_HEADS,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [8, 12, 12]},
    )
    config._attn_implementation = "eager" if way.startswith("eager") else "sdpa"
    model = Qwen2VLTextModel(config).eval()
    embeddings = torch.randn(1, tokens, HIDDEN)
    visual = torch.ones(1, tokens, dtype=torch.bool)
    visual[:, :4] = visual[:, 4 - PROMPT :] = False
    if way == "ours":
        probe.register()
        model.config._attn_implementation = probe.ATTENTION_NAME
    sums: list[torch.Tensor] = []

    def reduce_and_drop(module: Any, args: Any, output: Any) -> Any:
        """The seed paper's way: take a layer's eager map, reduce it, let go of it."""
        seen = visual[0, : output[1].shape[-1]]
        sums.append(output[1][0][:, seen][:, :, seen].sum(1).mean(0))
        return output[0], None

    if way == "eager-layer":
        for layer in model.layers:
            layer.self_attn.register_forward_hook(reduce_and_drop)

    def forward(length: int) -> None:
        page, seen = embeddings[:, :length], visual[:, :length]
        sums.clear()
        if way == "ours":
            with probe.capturing(seen, torch.ones_like(seen)) as recorder:
                model(inputs_embeds=page, use_cache=False)
            recorder.signals(LAYERS)
        elif way == "eager-all":
            for attention in model(inputs_embeds=page, use_cache=False, output_attentions=True).attentions:
                sums.append(attention[0][:, seen[0]][:, :, seen[0]].sum(1).mean(0))
        else:
            model(inputs_embeds=page, use_cache=False)

    with torch.inference_mode():
        forward(min(tokens, WARM_UP))
        before = _resident_mb("VmRSS")
        started = time.process_time()
        forward(tokens)
        seconds = time.process_time() - started
    peak = _resident_mb("VmHWM")
    return {"seconds": round(seconds, 3), "peak_mb": round(peak, 1), "extra_mb": round(peak - before, 1)}


def _in_own_process(way: str, tokens: int, threads: int) -> dict[str, float]:
    command = [sys.executable, "-m", "harness.bench.capture", way, str(tokens), str(threads)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        last = result.stderr.strip().splitlines()[-1:] or [f"exit status {result.returncode}"]
        raise PruneBoardError(f"measuring {way!r} at {tokens} tokens failed: {last[0]}")
    return json.loads(result.stdout)


def _memory_needed(way: str, tokens: int) -> int:
    """A rough floor, to refuse what would bring the machine down: float32 maps of all heads."""
    one_map = HEADS * tokens**2 * 4
    return {"eager-all": (LAYERS + 3) * one_map, "eager-layer": 4 * one_map}.get(way, 0)


def _free_memory() -> int:
    return int(_proc("/proc/meminfo", "MemAvailable") * 2**20)


def _resident_mb(field: str) -> float:
    return _proc("/proc/self/status", field)


def _proc(path: str, field: str) -> float:
    """A field of a /proc file, in MB."""
    if not sys.platform.startswith("linux"):
        raise PruneBoardError("`harness bench capture` reads memory from /proc and needs Linux")
    with open(path) as file:
        for line in file:
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) / 1024
    raise PruneBoardError(f"{path} does not report {field}")


if __name__ == "__main__":
    print(json.dumps(run_one(sys.argv[1], *(int(value) for value in sys.argv[2:]))))
