"""Run folders: what is damaged is named and never read, and two processes never write one run."""

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import harness
from harness.checked_folder import CHECKSUMS, CheckedFolder, DamagedError
from harness.cli import run as command
from pruners import PruneBoardError

WAY = "Delete it"


def test_files_are_read_as_they_were_written(tmp_path: Path) -> None:
    folder = CheckedFolder(tmp_path, WAY)
    folder.write("a/b.json", b"one")
    folder.write("a/b.json", b"two")
    assert CheckedFolder(tmp_path, WAY).read("a/b.json") == b"two"
    (tmp_path / "a" / "b.json").write_bytes(b"one")  # as a process leaves it that is killed before the second rename
    assert CheckedFolder(tmp_path, WAY).read("a/b.json") == b"one"
    (tmp_path / "a" / "b.json").write_bytes(b"three")
    with pytest.raises(DamagedError, match=r"b\.json is not what was written.*Delete it"):
        CheckedFolder(tmp_path, WAY).read("a/b.json")


def test_what_was_not_written_here_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    assert not CheckedFolder(tmp_path, WAY).has("x.json")


def test_a_line_cut_short_harms_no_other(tmp_path: Path) -> None:
    folder = CheckedFolder(tmp_path, WAY)
    folder.write("a.json", b"one")
    with (tmp_path / CHECKSUMS).open("a") as file:
        file.write("\nxxh3-12")
    again = CheckedFolder(tmp_path, WAY)
    assert again.read("a.json") == b"one"
    again.write("b.json", b"two")
    assert [CheckedFolder(tmp_path, WAY).read(name) for name in ("a.json", "b.json")] == [b"one", b"two"]


@pytest.mark.parametrize("letter", ["digest", "name", "line"])
def test_a_damaged_line_hides_no_file(tmp_path: Path, letter: str) -> None:
    for name, data in (("a.json", b"one"), ("b.json", b"two")):
        CheckedFolder(tmp_path, WAY).write(name, data)
    text = (tmp_path / CHECKSUMS).read_bytes()
    at = {"digest": text.index(b"xxh3-") + 9, "name": text.index(b"a.json"), "line": text.rindex(b"\n")}[letter]
    (tmp_path / CHECKSUMS).write_bytes(text[:at] + bytes([text[at] ^ 2]) + text[at + 1 :])
    with pytest.raises(DamagedError, match=r"checksums\.txt is damaged.*a\.json.*Delete it"):
        CheckedFolder(tmp_path, WAY).has("a.json")
    assert not CheckedFolder(tmp_path, WAY).has("c.json")


def test_only_one_process_writes(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from harness.checked_folder import CheckedFolder\n"
    code += "with CheckedFolder(Path(sys.argv[1]), '').one_writer():\n print('here', flush=True); sys.stdin.read()"
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "here\n"
        with (
            pytest.raises(PruneBoardError, match="another process is writing"),
            CheckedFolder(tmp_path, WAY).one_writer(),
        ):
            pass
    finally:
        other.kill()
        other.wait()
    with CheckedFolder(tmp_path, WAY).one_writer():  # it died with its process
        pass


@pytest.fixture(scope="module")
def finished_run(toy, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    options = {"backbone": toy.backbone, "benchmark": toy.benchmark, "calibration": toy.calibration}
    harness.evaluate(["random", "sap", "kmeans"], **options, store=folder / "stores", out=folder / "run", workers=1)
    return folder / "run"


def test_a_flipped_bit_in_a_run_is_named_and_never_printed(finished_run: Path, tmp_path: Path) -> None:
    """One bit anywhere in a run's files: the same table, or an error that names a file. Never another table."""
    expected = json.dumps(harness.load_run(finished_run).rows)
    files = [p for p in sorted(finished_run.rglob("*")) if p.is_file() and p.name not in ("log.txt", ".lock")]
    rng, named = random.Random(0), 0
    for path in [rng.choice(files) for _ in range(25)]:
        broken = tmp_path / "broken"
        shutil.copytree(finished_run, broken)
        target = broken / path.relative_to(finished_run)
        data = bytearray(target.read_bytes())
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        target.write_bytes(data)
        found = _rows_or_error(broken)
        assert found == expected or f"{broken}" in found
        named += found != expected
        shutil.rmtree(broken)
    assert named > 10


def test_an_edited_configuration_of_a_run_is_named(finished_run: Path, tmp_path: Path) -> None:
    edited = shutil.copytree(finished_run, tmp_path / "run")
    text = (edited / "config.toml").read_text()
    assert "seed = 42" in text
    (edited / "config.toml").write_text(text.replace("seed = 42", "seed = 43"))
    with pytest.raises(DamagedError, match=r"config\.toml is not what was written"):
        harness.load_run(edited)


@pytest.mark.parametrize("out", ["file/run", "file"])
def test_a_file_where_a_folder_should_be_is_one_line(tmp_path: Path, monkeypatch, capsys, out: str) -> None:
    (tmp_path / "file").write_text("")
    arguments = ["evaluate", "--out", str(tmp_path / out), "--store", str(tmp_path / "stores"), "--pruner", "random"]
    monkeypatch.setattr(sys, "argv", ["harness", *arguments])
    assert command() == 2
    assert "error:" in capsys.readouterr().err


def _rows_or_error(folder: Path) -> str:
    try:
        return json.dumps(harness.load_run(folder).rows)
    except PruneBoardError as error:
        return str(error)
