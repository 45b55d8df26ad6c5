"""A Ray cluster of two nodes with a core each: the same bytes as processes, whoever dies, and bad luck has a name."""

import os
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.api import encode, evaluate, write_index
from harness.bench.cluster import NODE, written
from harness.engine.engine import open_engine
from pruners import PruneBoardError
from tests.harness.evaluation.toy import BACKBONE, CRASHING, write_backbone, write_data_set

ray = pytest.importorskip("ray", reason="Ray is not installed")
pytestmark = pytest.mark.slow

METHODS = ["random", "sap", "docpruner", "kmeans"]


@pytest.fixture(scope="module")
def cluster() -> Iterator:
    from ray.cluster_utils import Cluster

    import harness.engine.ray  # noqa: F401 (what it asks of Ray is read when nodes start)

    made = Cluster(initialize_head=True, head_node_args=NODE)
    made.second = made.add_node(**NODE)
    yield made
    made.shutdown()


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> dict:
    folder = tmp_path_factory.mktemp("toy")
    write_data_set(folder / "pages" / "plain", range(120), queries=30)
    write_data_set(folder / "calibration", range(130, 170), queries=40)
    (folder / "crashing.py").write_text(CRASHING.replace("page-37", "page-7"))
    return {"backbone": str(write_backbone(folder)), "benchmark": str(folder / "pages"), "folder": folder}


def on(cluster) -> dict:
    return {"engine": "ray", "ray_address": cluster.address}


def measure(toy: dict, out: Path, **more) -> dict[str, str]:
    """Evaluate and give back every file, of the stores too, but those that hold times."""
    crashing = str(toy["folder"] / "crashing.py")
    asked = {
        "backbone": toy["backbone"],
        "benchmark": toy["benchmark"],
        "calibration": str(toy["folder"] / "calibration"),
    }
    found = evaluate([*METHODS, crashing], **asked, store=out / "stores", out=out / "run", **more)
    assert list(found.failures) == ["crashing"]
    return written(out)


def test_encoding_and_evaluating_give_the_bytes_of_one_process_also_when_a_node_is_killed(
    cluster, toy: dict, tmp_path: Path
) -> None:
    expected = measure(toy, tmp_path / "here", workers=1)
    assert measure(toy, tmp_path / "ray", **on(cluster)) == expected

    def kill() -> None:
        time.sleep(random.Random(5).uniform(1, 4))
        cluster.remove_node(cluster.second, allow_graceful=False)

    killer = threading.Thread(target=kill)
    killer.start()
    assert measure(toy, tmp_path / "killed", **on(cluster)) == expected
    killer.join()
    cluster.second = cluster.add_node(**NODE)
    cluster.wait_for_nodes(120)  # the killed one is known to be gone


def test_an_index_written_on_a_cluster_has_the_bytes_of_one_process(cluster, toy: dict, tmp_path: Path) -> None:
    method = tmp_path / "mine.py"  # which lies on no other node
    method.write_text(
        "from pruners import scorer\n\n\n"
        "@scorer('mine', needs=())\ndef mine(page):\n    return page.vectors.std(dim=1)\n"
    )
    asked = {"backbone": toy["backbone"], "benchmark": toy["benchmark"], "store": tmp_path / "stores"}
    results = evaluate([str(method)], **asked, codecs=["int8"], out=tmp_path / "run", workers=1)
    for name, more in (("here", {"workers": 1}), ("ray", on(cluster))):
        write_index(results, "mine | int8", out=tmp_path / name, store=tmp_path / "stores", **more)
    assert len(files := written(tmp_path / "here")) >= 3
    assert written(tmp_path / "ray") == files


@pytest.mark.timeout(120)
def test_what_a_dead_worker_left_is_done_by_one_that_had_finished(cluster, tmp_path: Path, monkeypatch) -> None:
    """The dead one's node is gone with it: nobody can be put in its place."""
    died, finished = tmp_path / "died", tmp_path / "finished"

    def make():
        def work(item: str) -> str:
            if item == "dies" and not died.exists():
                died.touch()
                while not finished.exists():
                    time.sleep(0.1)
                time.sleep(2)  # until that result was taken
                os._exit(1)
            finished.touch()
            return item

        return work

    with open_engine("ray", ray_address=cluster.address) as (engine, _):
        begin, begun = engine._begin, []

        def begin_two(doing, device) -> None:
            begun.append(device)
            if len(begun) > 2:
                monkeypatch.setattr(engine, "share", lambda device: 9.0)  # GPUs, of which there are none
            begin(doing, device)

        monkeypatch.setattr(engine, "_begin", begin_two)
        assert list(engine.stations(make, ["dies", "finishes"], "cpu")) == ["finishes", "dies"]
        assert len(begun) == 3


@pytest.mark.timeout(300)
def test_many_workers_may_die_if_no_piece_of_work_ends_them_again_and_again(
    cluster, tmp_path: Path, monkeypatch
) -> None:
    """As when a node of many cores dies."""
    monkeypatch.setattr("harness.engine.ray.RETRIES", 1)

    def make():
        def work(item: str) -> str:
            died = tmp_path / item
            if item == "deadly" or not died.exists():
                died.touch()
                os._exit(1)
            return item

        return work

    with open_engine("ray", ray_address=cluster.address) as (engine, _):
        assert sorted(engine.stations(make, ["a", "b", "c"], "cpu")) == ["a", "b", "c"]
        with pytest.raises(PruneBoardError, match="2 workers died over the same piece of work"):
            list(engine.stations(make, ["deadly"], "cpu"))


def test_results_come_in_order_or_as_they_come_and_errors_name_the_node(cluster) -> None:
    with open_engine("ray", ray_address=cluster.address) as (engine, workers):
        assert workers == 2
        with engine.spread(lambda i: i * i, range(30), workers) as results:
            assert list(results) == [i * i for i in range(30)]
        with engine.spread(lambda i: i * i, range(30), workers, ordered=False) as results:
            assert sorted(results) == [i * i for i in range(30)]

        def refuse(i: int) -> int:
            raise PruneBoardError("not this one")

        with (
            pytest.raises(PruneBoardError, match=r"on node .*: not this one"),
            engine.spread(refuse, range(3), 1) as results,
        ):
            list(results)

        with pytest.raises(ZeroDivisionError), engine.spread(lambda i: 1 // i, range(3), 1) as results:
            list(results)


FULL_DISK = """
    def encode_pages(self, images):
        import resource, pathlib
        if images[0].getpixel((0, 0))[0] >= 96 and pathlib.Path(FLAG).exists():  # in the last shard
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
"""
NO_MEMORY = """
    def encode_pages(self, images):
        import pathlib
        if len(images) > 1 or (pathlib.Path(FLAG).exists() and images[0].getpixel((0, 0))[0] == 100):
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
"""


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        (FULL_DISK, r"on node .*: no room for pages-00003"),
        (NO_MEMORY, r"on node .*: page 'page-100' alone does not"),
    ],
    ids=["the disk is full", "a GPU has no memory left"],
)
def test_bad_luck_of_a_worker_is_named_and_the_same_command_goes_on(
    cluster, toy: dict, tmp_path: Path, trouble: str, said: str
) -> None:
    flag = tmp_path / "trouble"
    file = tmp_path / "unlucky.py"
    head = "    def encode_pages(self, images):\n"
    file.write_text(BACKBONE.replace(head, trouble.replace("FLAG", repr(str(flag))).lstrip("\n")))
    flag.touch()
    asked = {"backbone": str(file), "benchmark": toy["benchmark"], "store": tmp_path / "stores"}
    with pytest.raises(PruneBoardError, match=said):
        encode(**asked, **on(cluster))
    flag.unlink()
    (store,) = encode(**asked).values()  # by any engine
    assert not list(store.folder.glob(".*.tmp")), "what another worker was writing when all were stopped"
    (alone,) = encode(**{**asked, "store": tmp_path / "alone"}).values()
    for path in sorted(alone.folder.iterdir()):
        assert path.read_bytes() == (store.folder / path.name).read_bytes(), path.name


def test_a_node_with_another_version_of_the_project_is_named(cluster, tmp_path: Path, monkeypatch) -> None:
    """What the driver has is changed, which the nodes have not."""
    from harness.engine import ray as module
    from harness.engine.sameness import whereabouts

    monkeypatch.setattr(module, "whereabouts", lambda: {**whereabouts(), "PruneBoard": "0.0, code 0"})
    with open_engine("ray", ray_address=cluster.address) as (engine, workers):
        with (
            pytest.raises(PruneBoardError, match=r"on node .*: it has PruneBoard .* instead of 0\.0, code 0"),
            engine.spread(lambda i: i, range(3), workers) as results,
        ):
            list(results)
        with pytest.raises(PruneBoardError, match=r"on node .*: it has PruneBoard"):
            list(engine.stations(lambda: os.getpid, [1, 2], "cpu"))


def test_a_method_that_ends_its_process_is_tried_again_and_then_named(cluster, monkeypatch) -> None:
    from harness.engine import ray as module

    monkeypatch.setattr(module, "RETRIES", 1)
    with (
        open_engine("ray", ray_address=cluster.address) as (engine, _),
        pytest.raises(PruneBoardError, match=r"could not be done 2 times.*ended its process"),
        engine.spread(lambda i: os._exit(1), range(1), 1) as results,
    ):
        list(results)
