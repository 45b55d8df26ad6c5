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
WAYS = {
    "sdpa": "plain SDPA",
    "ours": "ours, streaming",
    "eager-layer": "eager, a layer at a time",
    "eager-all": "eager, all maps kept",
}
"""Plain SDPA and ours run one after the other, so that a machine busy with other things treats them alike."""

COLUMNS = {
    "tokens": "tokens",
    "way": "way",
    "seconds": "CPU s",
    "time_ratio": "x",
    "peak_mb": "peak MB",
    "peak_ratio": "x",
    "extra_mb": "extra MB",
    "extra_ratio": "x",
    "note": "",
}


def measure(lengths: Sequence[int], *, repeats: int, threads: int, progress: Progress = quiet) -> list[dict[str, Any]]:
    """One row a length and way, with ratios to plain SDPA."""
    rows = []
    with progress("measurements", total=len(lengths) * len(WAYS), done=0) as advance:
        for tokens in lengths:
            plain: dict[str, float] = {}
            for way, title in WAYS.items():
                row: dict[str, Any] = {"tokens": tokens, "way": title}
                need, free = _memory_needed(way, tokens), _free_memory()
                if need > 0.85 * free:
                    row["note"] = f"not run: needs about {need / 2**30:.0f} GB of {free / 2**30:.0f} GB free"
                else:
                    row |= _in_own_process(way, tokens, repeats, threads)
                    plain = row if way == "sdpa" else plain
                    for name in ("seconds", "peak_mb", "extra_mb"):
                        label = {"seconds": "time", "peak_mb": "peak", "extra_mb": "extra"}[name]
                        row[f"{label}_ratio"] = round(row[name] / plain[name], 2)
                rows.append(row)
                advance(1)
    return rows


def run_one(way: str, tokens: int, repeats: int, threads: int) -> dict[str, float]:
    """Build the decoder, run it `repeats` times one way; CPU seconds of the fastest pass, peak of the process."""
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
    valid = torch.ones_like(visual)
    if way == "ours":
        probe.register()
        model.config._attn_implementation = probe.ATTENTION_NAME
    sums: list[torch.Tensor] = []

    def reduce_and_drop(module: Any, args: Any, output: Any) -> Any:
        """The seed paper's way: take a layer's eager map, reduce it, let go of it."""
        sums.append(output[1][0][:, visual[0]][:, :, visual[0]].sum(1).mean(0))
        return output[0], None

    if way == "eager-layer":
        for layer in model.layers:
            layer.self_attn.register_forward_hook(reduce_and_drop)
    before, best = _resident_mb("VmRSS"), float("inf")
    with torch.inference_mode():
        for _ in range(repeats):
            sums.clear()
            started = time.process_time()
            if way == "ours":
                with probe.capturing(visual, valid) as recorder:
                    model(inputs_embeds=embeddings, use_cache=False)
                recorder.signals(LAYERS)
            elif way == "eager-all":
                maps = model(inputs_embeds=embeddings, use_cache=False, output_attentions=True).attentions
                for attention in maps:
                    sums.append(attention[0][:, visual[0]][:, :, visual[0]].sum(1).mean(0))
                del maps
            else:
                model(inputs_embeds=embeddings, use_cache=False)
            best = min(best, time.process_time() - started)
    peak = _resident_mb("VmHWM")
    return {"seconds": round(best, 3), "peak_mb": round(peak, 1), "extra_mb": round(peak - before, 1)}


def _in_own_process(way: str, tokens: int, repeats: int, threads: int) -> dict[str, float]:
    command = [sys.executable, "-m", "harness.bench.capture", way, str(tokens), str(repeats), str(threads)]
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
