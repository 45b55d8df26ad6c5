"""Work spread over processes: order, how far workers run ahead, and what happens when someone stops early."""

import multiprocessing
import os
import time

import pytest

from harness.workers import spread

pytestmark = pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="work is not spread here")


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("items", [0, 1, 2, 200])
def test_results_come_in_order(workers: int, items: int) -> None:
    with spread(lambda i: i * i, range(items), workers) as results:
        assert list(results) == [i * i for i in range(items)]


def test_other_processes_do_the_work() -> None:
    with spread(lambda i: os.getpid(), range(20), 2) as results:
        first, *others = results
    assert first == os.getpid()
    assert os.getpid() not in others


def test_what_a_worker_does_is_not_spread_again() -> None:
    """The site's boards are spread, and each checks submissions, which alone would be spread."""

    def inner(i: int) -> list[int]:
        with spread(lambda k: os.getpid(), range(3), 2) as results:
            return list(results)

    with spread(inner, range(6), 2) as results:
        first, *others = results
    assert len(set(first)) > 1  # done here, where cores are free
    assert all(len(set(pids)) == 1 and os.getpid() not in pids for pids in others)


def test_workers_do_not_run_ahead_of_whoever_takes_the_results() -> None:
    """Scores of pages wait in memory: as many as there are pages would not fit."""
    done = multiprocessing.get_context("fork").Value("i", 0)

    def work(i: int) -> int:
        with done.get_lock():
            done.value += 1
        return i

    with spread(work, range(1000), 2) as results:
        for _ in range(10):
            next(results)
        time.sleep(1)  # time enough for all thousand
    assert 10 <= done.value < 200, "of a thousand"
