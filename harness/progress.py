"""Progress of long work, as a small function that stages call without knowing about terminals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from harness.console import people

Advance = Callable[..., None]
"""`advance(n)` after n more items; `advance(0, note="...")` to say something beside the bar."""


SETTLED = 0.5
"""Seconds after which a speed says something."""


class Progress(Protocol):
    def __call__(self, what: str, *, total: int, done: int) -> AbstractContextManager[Advance]: ...


@contextmanager
def quiet(what: str, *, total: int, done: int) -> Iterator[Advance]:
    """No progress shown."""
    yield lambda count, note="": None


@contextmanager
def bar(what: str, *, total: int, done: int) -> Iterator[Advance]:
    """A bar on stderr with speed and time left."""
    with display() as progress, progress(what, total=total, done=done) as advance:
        yield advance


@contextmanager
def display() -> Iterator[Progress]:
    """One display for work within work: bars that are open at the same time stand below each other."""
    from rich import progress as rich_progress

    columns = (
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(),
        rich_progress.MofNCompleteColumn(),
        rich_progress.TextColumn("{task.fields[speed]}"),
        rich_progress.TimeRemainingColumn(),
        rich_progress.TextColumn("{task.fields[note]}"),
    )
    with rich_progress.Progress(*columns, console=people) as shown:

        @contextmanager
        def add(what: str, *, total: int, done: int) -> Iterator[Advance]:
            task = shown.add_task(what, total=total, completed=done, speed="", note="")
            outermost = len(shown.tasks) == 1

            def advance(count: int, note: str = "") -> None:
                shown.advance(task, count)
                now = next(t for t in shown.tasks if t.id == task)
                if now.elapsed and now.elapsed > SETTLED:  # since the beginning: items often come many at a time
                    shown.update(task, speed=f"{(now.completed - done) / now.elapsed:.1f}/s")
                if note:
                    shown.update(task, note=note)

            yield advance
            if not outermost:  # what was done within stays on screen only while it runs
                shown.remove_task(task)

        yield add
