"""What capturing attention costs: four ways over the same random decoder, each measured in a process of its own.

The decoder (`decoder.py`) is a small one of Qwen2-VL's kind, or has the shape of a backbone's. It is fed one page: all
tokens visual except a prompt. Memory is the process's peak on the CPU, and what torch allocated on CUDA.
"""

from __future__ import annotations

import harness.compat  # noqa: F401

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

from harness.bench.decoder import QWEN2_VL, Decoder
from harness.progress import Progress, quiet
from pruners.core.errors import PruneBoardError

LENGTHS, LONG = (1024, 3072, 6144), 12288
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
    "seconds": "seconds",
    "seconds_ratio": "x",
    "peak_mb": "peak MB",
    "peak_mb_ratio": "x",
    "extra_mb": "extra MB",
    "extra_mb_ratio": "x",
    "note": "",
}


def measure(
    lengths: Sequence[int], *, repeats: int, threads: int, progress: Progress = quiet, decoder: Decoder = QWEN2_VL
) -> list[dict[str, Any]]:
    """One row a length and way, with ratios to plain SDPA.

    Plain SDPA and ours alternate `repeats` times and the fastest of each counts, so that a machine busy with other
    things treats them alike; the eager ways are far behind and run once.
    """
    rows = []
    weights = decoder.weight_bytes()
    with progress("measurements", total=len(lengths) * (2 * repeats + len(WAYS) - 2), done=0) as advance:
        for tokens in lengths:
            runs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
            notes: dict[str, str] = {}
            for way in [*CLOSE * repeats, *(way for way in WAYS if way not in CLOSE)]:
                need, free = weights + _memory_needed(decoder, way, tokens), _free_memory(decoder.device)
                if need > 0.85 * free:
                    notes[way] = f"not run: needs about {need / 2**30:.0f} GB of {free / 2**30:.0f} GB free"
                else:
                    runs[way].append(_in_own_process(decoder, way, tokens, threads))
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


def run_one(decoder: Decoder, way: str, tokens: int, threads: int) -> dict[str, float]:
    """Build the decoder and run it once, one way: seconds of the pass, and the peak of memory."""
    import torch

    from harness.backbones import probe

    if threads:
        torch.set_num_threads(threads)
    model = decoder.build("eager" if way.startswith("eager") else "sdpa")
    like = {"device": decoder.device, "dtype": next(model.parameters()).dtype}
    embeddings = torch.randn(1, tokens, decoder.hidden, **like)
    visual = torch.ones(1, tokens, dtype=torch.bool, device=decoder.device)
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
        inputs: dict[str, Any] = {"inputs_embeds": page, "use_cache": False}
        if decoder.bidirectional:
            inputs["attention_mask"] = _every_pair(length, like, eager=way.startswith("eager"))
        if way == "ours":
            with probe.capturing(seen, torch.ones_like(seen)) as recorder:
                model(**inputs)
            recorder.signals(range(decoder.layers))
        elif way == "eager-all":
            for attention in model(**inputs, output_attentions=True).attentions:
                sums.append(attention[0][:, seen[0]][:, :, seen[0]].sum(1).mean(0))
        else:
            model(**inputs)

    with torch.inference_mode():
        forward(min(tokens, WARM_UP))
        meter = _CudaMeter(decoder.device) if decoder.device.startswith("cuda") else _ProcessMeter()
        forward(tokens)
        return meter.read()


def _every_pair(length: int, like: dict[str, Any], eager: bool) -> Any:
    """The mask of a page whose tokens all see each other: true everywhere; eager attention adds it, so zeros there."""
    import torch

    shape = (1, 1, length, length)
    return torch.zeros(shape, **like) if eager else torch.ones(shape, dtype=torch.bool, device=like["device"])


class _ProcessMeter:
    """CPU seconds, and the largest this process has been: with its model and libraries, and above that."""

    def __init__(self) -> None:
        self.before, self.started = _resident_mb("VmRSS"), time.process_time()

    def read(self) -> dict[str, float]:
        seconds, peak = time.process_time() - self.started, _resident_mb("VmHWM")
        return {"seconds": round(seconds, 3), "peak_mb": round(peak, 1), "extra_mb": round(peak - self.before, 1)}


class _CudaMeter:
    """Seconds until the device is done, and the most that torch had allocated on it. Not run by the project's tests."""

    def __init__(self, device: str) -> None:
        import torch

        self.cuda, self.device = torch.cuda, device
        self.cuda.synchronize(device)
        self.cuda.reset_peak_memory_stats(device)
        self.before, self.started = self.cuda.memory_allocated(device), time.perf_counter()

    def read(self) -> dict[str, float]:
        self.cuda.synchronize(self.device)
        seconds, peak = time.perf_counter() - self.started, self.cuda.max_memory_allocated(self.device)
        extra = (peak - self.before) / 2**20
        return {"seconds": round(seconds, 3), "peak_mb": round(peak / 2**20, 1), "extra_mb": round(extra, 1)}


def _in_own_process(decoder: Decoder, way: str, tokens: int, threads: int) -> dict[str, float]:
    command = [sys.executable, "-m", "harness.bench.capture", str(decoder), way, str(tokens), str(threads)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        last = result.stderr.strip().splitlines()[-1:] or [f"exit status {result.returncode}"]
        raise PruneBoardError(f"measuring {way!r} at {tokens} tokens failed: {last[0]}")
    return json.loads(result.stdout)


def _memory_needed(decoder: Decoder, way: str, tokens: int) -> int:
    """A rough floor, to refuse what would bring the machine down: float32 maps of all heads."""
    one_map = decoder.heads * tokens**2 * 4
    return {"eager-all": (decoder.layers + 3) * one_map, "eager-layer": 4 * one_map}.get(way, 0)


def _free_memory(device: str) -> int:
    if device.startswith("cuda"):
        import torch

        return torch.cuda.mem_get_info(device)[0]
    from harness.backbones.batching import available_memory

    return available_memory()


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
    shape, chosen_way, *numbers = sys.argv[1:]
    print(json.dumps(run_one(Decoder.parse(shape), chosen_way, *map(int, numbers))))
