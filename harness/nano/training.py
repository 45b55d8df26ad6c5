"""The training run: two stages of fixed length, a state file to resume from, NDCG on held-out pages along the way.

The result depends on the settings and the number of torch threads, never on the clock or on interruptions: every
step draws its own batch, and the learning rate is a function of the step.
"""

from __future__ import annotations

import harness.compat  # noqa: F401

import dataclasses
import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from colpali_engine.models import ColPali
from rich.progress import track
from torch import nn

from harness.console import people
from harness.minidocs.benchmark import Recipe, build
from harness.minidocs.queries import LANGUAGES
from harness.minidocs.specs import LAYOUTS

from . import batches, checkpoint, contrast, measure, reading

HELD_OUT = Recipe("nano-held-out", LAYOUTS, 120, 60, languages=LANGUAGES)
"""Pages and queries for the log and for choosing settings: not in the benchmark, never trained on."""


@dataclass(frozen=True)
class TrainingSettings:
    seed: int = 4
    threads: int = 1
    """One, beside the process that draws. On two cores with other work, 20 steps of reading took 57 to 87 s on two
    threads and 12 s on one."""
    reading_steps: int = 1800
    reading_rate: float = 1.5e-3
    contrast_steps: int = 250
    contrast_rate: float = 1e-3
    warmup: int = 50
    save_every: int = 50
    measure_every: int = 100


class TrainingRun:
    """What a run carries from step to step, and its folder: `state.pt` to resume from, `log.jsonl` to read."""

    def __init__(self, settings: TrainingSettings, folder: Path) -> None:
        self.settings, self.folder = settings, folder
        torch.manual_seed(settings.seed)
        torch.set_num_threads(settings.threads)
        self.model: ColPali = checkpoint.build_model(settings.seed)
        self.head = reading.build_head()
        self.temperature = contrast.Temperature()
        self.processor = checkpoint.build_processor()
        self.stage, self.step, self.seconds = "reading", 0, 0.0
        self.optimizer = self._optimizer()
        folder.mkdir(parents=True, exist_ok=True)

    def _optimizer(self) -> torch.optim.AdamW:
        if self.stage == "reading":
            trained: list[nn.Parameter] = [*self.model.model.model.vision_tower.parameters(), *self.head.parameters()]
        else:
            trained = [*self.model.parameters(), *self.head.parameters(), *self.temperature.parameters()]
        return torch.optim.AdamW(trained, lr=self.settings.reading_rate, weight_decay=0.01, betas=(0.9, 0.98))

    def enter_contrast(self) -> None:
        reading.warm_start(self.model, self.head)
        self.stage, self.step = "contrast", 0
        self.optimizer = self._optimizer()

    def save(self) -> None:
        state = {
            "settings": dataclasses.asdict(self.settings),
            "stage": self.stage,
            "step": self.step,
            "seconds": self.seconds,
            "model": self.model.state_dict(),
            "head": self.head.state_dict(),
            "temperature": self.temperature.state_dict(),
            "optimizer": self.optimizer.state_dict(),
        }
        # A run killed while writing must find its last whole state again.
        torch.save(state, self.folder / "state.tmp")
        (self.folder / "state.tmp").replace(self.folder / "state.pt")

    def resume(self) -> None:
        path = self.folder / "state.pt"
        if not path.exists():
            return
        state = torch.load(path, weights_only=True)
        self.stage, self.step, self.seconds = state["stage"], state["step"], state["seconds"]
        self.model.load_state_dict(state["model"])
        self.head.load_state_dict(state["head"])
        self.temperature.load_state_dict(state["temperature"])
        self.optimizer = self._optimizer()
        self.optimizer.load_state_dict(state["optimizer"])
        people.print(f"resuming {self.stage} at step {self.step}")

    def log(self, **values: Any) -> None:
        row = {"stage": self.stage, "step": self.step, "seconds": round(self.seconds), **values}
        with (self.folder / "log.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
        people.print("  ".join(f"{k} {v:.4f}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items()))


def train(settings: TrainingSettings, folder: Path, base_to: Path, ship_to: Path | None) -> None:
    """Run both stages, from where `folder` stands; write the base before the first contrast step, the rest at the end.

    Without `ship_to` the run stops after the base.
    """
    run = TrainingRun(settings, folder)
    run.resume()
    if run.stage == "reading":
        _stage(run, settings.reading_steps, settings.reading_rate, batches.reading_batch, _read, _measure_reading)
        run.enter_contrast()
        # Before the state: a run killed between the two comes here again, instead of going on without a base.
        checkpoint.save_weights(run.model, base_to)
        run.save()
        _measure_retrieval(run)
    if ship_to is None:
        return
    _stage(run, settings.contrast_steps, settings.contrast_rate, batches.contrast_batch, _contrast, _measure_retrieval)
    checkpoint.save(run.model, ship_to)


def _stage(
    run: TrainingRun,
    steps: int,
    rate: float,
    make: Callable[[int, int], Any],
    loss_of: Callable[[TrainingRun, Any], tuple[torch.Tensor, dict[str, float]]],
    measure_it: Callable[[TrainingRun], None],
) -> None:
    run.model.train()
    before = time.monotonic()
    data: Iterator[Any] = batches.stream(make, run.settings.seed, run.step, steps)
    for batch in track(data, f"{run.stage}", total=steps - run.step, console=people):
        for group in run.optimizer.param_groups:
            group["lr"] = rate * _schedule(run.step, steps, run.settings.warmup)
        loss, figures = loss_of(run, batch)
        run.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(run.optimizer.param_groups[0]["params"], 1.0)
        run.optimizer.step()
        run.step += 1
        now = time.monotonic()
        run.seconds, before = run.seconds + now - before, now
        if run.step % 20 == 0:
            run.log(loss=loss.item(), **figures)
        if run.step % run.settings.measure_every == 0 or run.step == steps:
            measure_it(run)
        if run.step % run.settings.save_every == 0 or run.step == steps:
            run.save()


def _schedule(step: int, steps: int, warmup: int) -> float:
    """Linear warm-up, then a half cosine down to a twentieth."""
    if step < warmup:
        return (step + 1) / warmup
    return 0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup)))


def _read(run: TrainingRun, batch: batches.ReadingBatch) -> tuple[torch.Tensor, dict[str, float]]:
    features = reading.see(run.model, batch)
    return reading.reading_loss(features, run.head, batch.labels), {
        "read": reading.reading_accuracy(features, run.head, batch.labels)
    }


def _contrast(run: TrainingRun, batch: batches.ContrastBatch) -> tuple[torch.Tensor, dict[str, float]]:
    loss, first = contrast.contrast_loss(run.model, run.head, run.temperature, run.processor, batch)
    return loss, {"first": first}


def _measure_reading(run: TrainingRun) -> None:
    """On the step numbers below zero, which training never draws."""
    with torch.inference_mode():
        shares = []
        for step in (-1, -2, -3):
            batch = batches.reading_batch(run.settings.seed, step)
            shares.append(reading.reading_accuracy(reading.see(run.model, batch), run.head, batch.labels))
    run.log(held_out_read=sum(shares) / len(shares))


def _measure_retrieval(run: TrainingRun) -> None:
    data = build(HELD_OUT)
    run.model.eval()
    pages = measure.encode_pages(run.model, run.processor, [data.image(place) for place in range(len(data.pages))])
    queries = measure.encode_queries(run.model, run.processor, [query.text for query in data.queries])
    run.model.train()
    ndcg = measure.ndcg_at_5(measure.maxsim_scores(queries, pages), data.qrels)
    groups: dict[str, list[float]] = {}
    for place, value in ndcg.items():
        query = data.queries[place]
        for group in ("all", query.ask.kind, query.language):
            groups.setdefault(group, []).append(value)
    run.log(**{f"ndcg_at_5_{name}": sum(values) / len(values) for name, values in sorted(groups.items())})
