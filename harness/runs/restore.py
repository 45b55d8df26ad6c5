"""A method of a finished run as it was measured: the same code, parameters, window and learned state, or an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.evaluation.index_size import FLOAT16
from harness.evaluation.made_by import describe_method
from harness.evaluation.methods import Method
from harness.evaluation.record import learned_by
from harness.submissions.run_facts import FinishedRun
from pruners import Codec, Pruner, catalogue
from pruners.core import plugins
from pruners.core.codec_catalog import codec_catalogue, read_codecs
from pruners.core.errors import PruneBoardError
from pruners.core.identity import all_parts
from pruners.core.learned_state import from_tree, read_tensors
from pruners.core.plugins import file_and_rest

AS_MEASURED = {"code": "its code", "composition": "its window or parameters", "learned": "what it learned"}


def restore(run: FinishedRun, text: str, own: Sequence[Pruner]) -> Pruner:
    """The method `text` of a run. `own` are pruners whose classes no file holds."""
    facts = run.methods[text]
    where = run.files.folder
    if facts["partner_of"]:
        raise PruneBoardError(f"{text} only has the ratio that {facts['partner_of']} keeps: ask for one of the two")
    if facts.get("state") is None:
        raise PruneBoardError(facts.get("no_state") or f"{where} keeps no state of {text}: evaluate it again")
    given = {type(part).declaration.name: type(part) for pruner in own for part in all_parts(pruner)}
    known = catalogue()
    if facts["file_hash"]:  # a file of the user's holds it, or a part of it
        known = catalogue(dict.fromkeys(file for name in run.config.pruners if (file := file_and_rest(name)[0])))

    def class_of(name: str) -> type[Pruner]:
        if name in given:
            return given[name]
        if name not in known:
            raise PruneBoardError(f"no file holds {name}: load_run({str(where)!r}, pruners=[{name}])")
        return plugins.load(known[name])

    tensors = read_tensors(run.files.read_bytes(f"learned/{facts['slug']}.safetensors"))
    pruner = from_tree(facts["state"], tensors, class_of)
    packages = {name: entry.source for name, entry in known.items()}
    now = describe_method(Method(text, pruner, facts["trials"], codec=restore_codec(run, text)), [], packages)
    for name, what in AS_MEASURED.items():
        if now[name] != facts["made_by"][name]:
            raise PruneBoardError(f"{text} is not what {where} measured: {what} changed since. Evaluate it again")
    return pruner


def restore_codec(run: FinishedRun, text: str) -> Codec:
    """The codec of the method `text`, with what it learned."""
    return codec_from(run.methods[text].get("codec"), codec_tensors(run, text))


def codec_tensors(run: FinishedRun, text: str) -> bytes | None:
    """What the codec of a method learned, as a file; None if it learned nothing."""
    facts = run.methods[text].get("codec")
    return None if facts is None else run.files.read_bytes(learned_by(*read_codecs(facts["text"])))


def codec_from(facts: Mapping[str, Any] | None, tensors: bytes | None) -> Codec:
    """A codec by what a run or an index says of it; None is float16."""
    if facts is None:
        return FLOAT16
    known = codec_catalogue()
    if facts["name"] not in known:
        raise PruneBoardError(f"vectors were stored by a codec {facts['name']} that is not installed here")
    return from_tree(facts["state"], read_tensors(tensors), lambda name: plugins.load(known[name]))
