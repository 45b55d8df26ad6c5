"""Finding a checkpoint: a local folder or a Hugging Face id, what it lacks, and what identifies its content."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import xxhash
from safetensors import safe_open

from pruners.core.errors import PruneBoardError

WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
ADAPTER = ("adapter_config.json", "adapter_model.safetensors")
PROCESSOR = ("preprocessor_config.json", "processor_config.json")


class CheckpointError(PruneBoardError):
    """A checkpoint is absent or incomplete."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint on this disk. `base` is the model a LoRA checkpoint is an adapter of."""

    name: str
    folder: Path
    revision: str
    base: Checkpoint | None = None

    @property
    def identity(self) -> str:
        return self.revision if self.base is None else f"{self.revision}+{self.base.revision}"


def find_checkpoint(name: str, revision: str | None, *, processor: bool = True) -> Checkpoint:
    """The checkpoint `name` (folder or id), downloaded if it must and can be. `processor=False` for base models."""
    folder = _folder_of(name, revision)
    missing = missing_files(folder, processor=processor)
    if missing:
        raise CheckpointError(_absent(name, revision, f"lacks {', '.join(missing)}"))
    base = None
    if (folder / ADAPTER[0]).is_file():
        base_name = json.loads((folder / ADAPTER[0]).read_text())["base_model_name_or_path"]
        base = _base_of(name, folder, base_name)
    return Checkpoint(name, folder, _revision_of(folder), base)


def _base_of(adapter: str, folder: Path, name: str) -> Checkpoint:
    try:
        return find_checkpoint(name, None, processor=False)
    except CheckpointError as error:
        fetch = "" if _is_folder(name) else f"Where there is a network, run `hf download {name}`. "
        raise CheckpointError(
            f"{adapter!r} is a LoRA adapter of the base model {name!r}, which is not there as a whole. {fetch}A copy "
            f"in another folder is found if {ADAPTER[0]} in {folder} names that folder as base_model_name_or_path. "
            f"In detail: {str(error).partition('. ')[0]}. `--backbone nano` works offline."
        ) from error


def missing_files(folder: Path, *, processor: bool = True) -> list[str]:
    """The files a loader will need and not find, named; alternatives joined by `or`."""
    if (folder / ADAPTER[0]).is_file():
        wanted: list[tuple[str, ...]] = [(ADAPTER[1],)]
    else:
        wanted = [("config.json",), WEIGHTS]
    if processor:
        wanted += [PROCESSOR, ("tokenizer.json",)]
    missing = [" or ".join(names) for names in wanted if not any((folder / name).is_file() for name in names)]
    index = folder / WEIGHTS[1]
    if index.is_file() and not (folder / WEIGHTS[0]).is_file():
        shards = sorted(set(json.loads(index.read_text())["weight_map"].values()))
        missing += [shard for shard in shards if not (folder / shard).is_file()]
    return missing


def weight_files(folder: Path) -> list[Path]:
    """The files that hold a model's weights: one, or the shards that its index names."""
    if (folder / WEIGHTS[0]).is_file():
        return [folder / WEIGHTS[0]]
    places = json.loads((folder / WEIGHTS[1]).read_text())["weight_map"]
    return [folder / name for name in sorted(set(places.values()))]


def rows_of_weight(checkpoint: Checkpoint, name: str) -> int:
    """The rows of the first weight whose name ends so; there must be one."""
    if (rows := find_rows(checkpoint, name)) is None:
        raise CheckpointError(f"checkpoint {checkpoint.name!r} has no weight {name!r}; it is no multi-vector retriever")
    return rows


def find_rows(checkpoint: Checkpoint, name: str) -> int | None:
    """The same, or None, from the headers of the files: nothing is loaded."""
    for source in (checkpoint, checkpoint.base):
        for path in sorted(source.folder.glob("*.safetensors")) if source else []:
            with safe_open(path, framework="np") as file:
                for key in file.keys():  # noqa: SIM118 (not a dict)
                    if key.endswith(name):
                        return int(file.get_slice(key).get_shape()[0])
    return None


def _folder_of(name: str, revision: str | None) -> Path:
    if _is_folder(name):
        return Path(name).expanduser().resolve()
    if name.startswith((".", "/", "~")) or name.count("/") != 1:
        raise CheckpointError(f"there is no checkpoint folder {name!r}, and it is not a Hugging Face id (owner/name)")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        cached = Path(snapshot_download(name, revision=revision, local_files_only=True))
    except LocalEntryNotFoundError:
        pass
    else:
        if not missing_files(cached, processor=False):
            return cached
    try:
        return Path(snapshot_download(name, revision=revision))
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        weights = f"config.json and {WEIGHTS[0]} or its shards (of an adapter: {' and '.join(ADAPTER)})"
        why = (
            f"is not on this disk and could not be downloaded ({type(error).__name__}); "
            f"missing: {weights}, {PROCESSOR[0]}, tokenizer.json"
        )
        raise CheckpointError(_absent(name, revision, why)) from error


def _is_folder(name: str) -> bool:
    return Path(name).expanduser().is_dir()


def _absent(name: str, revision: str | None, why: str) -> str:
    if _is_folder(name):
        way_out = "Save the model and its processor there with save_pretrained()."
    else:
        pin = f" --revision {revision}" if revision else ""
        way_out = (
            f"Where there is a network, run `hf download {name}{pin}` and copy the folder it prints; "
            "then name it: --backbone NAME=FOLDER."
        )
    return f"checkpoint {name!r} {why}. {way_out} `--backbone nano` works offline."


def _revision_of(folder: Path) -> str:
    """The commit when the folder is a snapshot of the Hugging Face cache, else a hash of the files themselves."""
    return folder.name if folder.parent.name == "snapshots" else content_hash(folder)


def content_hash(folder: Path) -> str:
    """Of the files that decide what a model gives."""
    digest = xxhash.xxh3_128()
    for path in sorted(p for p in folder.rglob("*") if p.suffix in {".json", ".safetensors", ".model", ".txt"}):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
        with path.open("rb") as file:
            while chunk := file.read(1 << 22):
                digest.update(chunk)
    return f"xxh3-{digest.hexdigest()}"
