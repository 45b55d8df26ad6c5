"""The text form of a pruner: it reads back as written, and errors point at the character."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pruners import Pruner, Window, parse, resolve
from pruners.core.catalog import resolve_stored
from pruners.core.errors import CatalogError, ExpressionError, PruneBoardError

windows = st.tuples(st.integers(0, 40), st.integers(1, 9)).map(lambda t: Window(t[0], t[0] + t[1]))
scorers = st.one_of(
    st.builds(lambda w: f"sap(layers={w})", windows),
    st.sampled_from(["eos", "ink", "random", "sap_max(layers=all)", "pca_leverage(components=3)", "pca_leverage"]),
)
numbers = st.floats(-5, 5, allow_nan=False).map(repr)
adaptives = st.builds("adaptive({}, z={}, clip={})".format, scorers, numbers, st.sampled_from(["true", "false"]))
texts = st.one_of(
    scorers,
    adaptives,
    st.builds("merge(after={}, factor={})".format, st.one_of(scorers, adaptives), st.integers(1, 9)),
    st.builds("merge({}, how={})".format, scorers, st.sampled_from(["ward", "absorb"])),
    st.builds("hpc(by={}, codes={})".format, scorers, st.integers(2, 999)),
    st.builds("docpruner(z={})".format, st.one_of(numbers, st.just("none"))),
)


@pytest.mark.slow
@given(texts)
def test_a_pruner_written_and_read_is_the_same(text: str) -> None:
    pruner = parse(text)
    assert parse(str(pruner)) == pruner
    assert str(parse(str(pruner))) == str(pruner)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("sap(layers=11-14)", "sap(layers=11-14)"),
        (" sap ( layers = 11-14 ) ", "sap(layers=11-14)"),
        ("sap(11-14)", "sap(layers=11-14)"),
        ("sap(layers=5)", "sap(layers=5)"),
        ("sap()", "sap"),
        ("adaptive(sap)", "adaptive(sap)"),
        ("adaptive(of=eos, clip=false)", "adaptive(eos)"),
        ("merge(after=adaptive(eos), factor=2)", "merge(adaptive(eos))"),
        ("merge(sap(layers=1-3), how='absorb')", "merge(sap(layers=1-3), how=absorb)"),
        ("attn_fps(by=sap(layers=all), alpha=1)", "attn_fps(sap(layers=all), alpha=1.0)"),
    ],
)
def test_text_has_one_canonical_form(text: str, canonical: str) -> None:
    assert str(parse(text)) == canonical


@pytest.mark.parametrize(
    ("text", "pruners"),
    [
        ("docpruner(z=-0.5|0|none)", ["docpruner(z=-0.5)", "docpruner(z=0.0)", "docpruner"]),
        ("sap(layers=2|11-14|all)", ["sap(layers=2)", "sap(layers=11-14)", "sap(layers=all)"]),
        ("sap(2|3)", ["sap(layers=2)", "sap(layers=3)"]),
        ("sap(layers=2)|eos", ["sap(layers=2)", "eos"]),
        ("adaptive(eos|ink)", ["adaptive(eos)", "adaptive(ink)"]),
        ("merge(sap(layers=1|2), how=ward|absorb)", [
            *("merge(sap(layers=1))", "merge(sap(layers=1), how=absorb)"),
            *("merge(sap(layers=2))", "merge(sap(layers=2), how=absorb)"),
        ]),
    ],
)  # fmt: skip
def test_a_grid_is_a_pruner_for_each_value_and_several_multiply(text: str, pruners: list[str]) -> None:
    assert [str(p) for p in resolve([text])] == pruners
    with pytest.raises(PruneBoardError, match=f"names {len(pruners)} pruners where one is expected"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "character", "complaint"),
    [
        ("sap(layers=11-14", 4, "never closed"),
        ("sap(layers=11-14))", 18, "unmatched"),
        ("sap(layer=11-14)", 5, "no parameter 'layer'; did you mean layers"),
        ("sap(layers=14-11)", 12, "start < stop"),
        ("sap(layers=x)", 12, "not a window"),
        ("sap(layers=1.5)", 12, "expected layers such as 11-14 or none"),
        ("sap(layers=1-2, layers=3)", 17, "given twice"),
        ("adaptive(spa)", 10, "no pruner 'spa'; did you mean sap"),
        ("adaptive()", 1, "adaptive needs of"),
        ("adaptive(kcenter)", 1, "only ranks patches"),
        ("adaptive(docpruner)", 10, "expected a Scorer"),
        ("adaptive(eos, 0.5)", 15, "only the first argument may stand without a name"),
        ("adaptive(eos, clip=1)", 20, "expected true or false"),
        ("docpruner(z=high)", 13, "expected a number or none"),
        ("merge(kmeans)", 1, "kmeans makes new vectors"),
        ("merge(sap, how=glue)", 16, "expected ward or absorb"),
        ("merge(sap, how=ward(x=1))", 16, "expected ward or absorb, not a pruner with arguments"),
        ("merge(sap, how=ward())", 16, "expected ward or absorb, not a pruner with arguments"),
        ("merge(adaptive(eos, z=ward(x=1)))", 23, "expected a number or none, not a pruner with arguments"),
        ("merge(sap, factor=0.5)", 1, "at least 1"),
        ("tome(rate=0.9)", 1, "at most 0.5"),
        ("eos(3)", 5, "only the first argument|no parameter"),
        ("__import__('os')", 1, "no pruner '__import__'"),
        ("tome(rate=0.1|0.9)", 1, "at most 0.5"),
        ("sap(layers=1|x)", 14, "not a window"),
        ("sap(layers=1|)", 14, r"write a pruner as name or name\(param=value\)"),
        ("sap(layers=1+1)", 12, "expected layers such as 11-14 or none"),
        ("sap;eos", 4, "write a pruner as name"),
        ("sap, eos", 1, "expected the name of a pruner"),
        ("sap(layers=11-14)[0]", 1, "expected the name of a pruner"),
        ("sap(layers=11-14)(3)", 1, "expected the name of a pruner"),
        ("sap(**eos)", 7, "not a window"),
        ("  adaptive(\n eos, z='ä', clop=1)", 21, "expected a number or none"),
        ("adaptive(eos, z='ä' , clip='ö')", 17, "expected a number or none"),
        ("merge(sap, how='ä', factor=0)", 16, "expected ward or absorb"),
        ("merge(sap, how='ä', factor=ö)", 28, "a name has plain letters"),
        ("merge(sap, ｈow=ward)", 12, "a name has plain letters"),
        ("ｓap", 1, "a name has plain letters"),
    ],
)
def test_an_error_points_at_the_character(text: str, character: int, complaint: str) -> None:
    with pytest.raises(ExpressionError, match=complaint) as caught:
        parse(text)
    message, *shown, caret = str(caught.value).split("\n")
    assert f"at character {character}:" in message
    assert "\n".join(shown) == f"  {text}"
    assert caret.index("^") - 2 == character - 1


LABELLED = '''
from pruners import scorer


@scorer("labelled")
def labelled(page, label: str = "-"):
    """Scores with a label.

    Formula:
        s_{j} = e_{j1}
    """
    return page.vectors[:, 0]
'''


def test_any_text_is_read_as_it_is_written_and_takes_its_place_in_characters(tmp_path: Path) -> None:
    (tmp_path / "labelled.py").write_text(LABELLED)
    file = f"{tmp_path}/labelled.py"
    for label in ["it's", 'say "it\'s"', r"C:\temp", "two words", "true", "lambda", "ärger", ""]:
        (pruner,) = resolve([f"{file}({label!r})"])
        assert pruner.fields() == {"label": label}
        assert resolve([f"{file}:{pruner}"]) == [pruner]
        assert str(pruner).isascii()  # as a submission must name it
    with pytest.raises(ExpressionError, match="at character 23: labelled has no parameter 'lable'; did you mean label"):
        resolve([f"{file}:labelled(label='äöü', lable=2)"])


def test_learned_state_is_neither_written_nor_readable() -> None:
    with pytest.raises(ExpressionError, match="no parameter 'thresholds'"):
        parse("adaptive(eos, thresholds=1)")


@given(st.text(max_size=40))
def test_any_text_is_a_pruner_or_a_named_error(text: str) -> None:
    with contextlib.suppress(PruneBoardError):
        assert isinstance(parse(text), Pruner)


def test_a_codec_stands_after_what_it_stores() -> None:
    def read(text: str) -> list[str]:
        return [f"{pruner} | {codec}" for pruner, codec in resolve_stored([text])]

    assert read("sap | int8") == ["sap | int8"]
    assert read("sap|eos | int8|binary") == ["sap | int8", "sap | binary", "eos | int8", "eos | binary"]
    assert read("sap | (int8 | binary)") == ["sap | int8", "sap | binary"]
    assert read("mmr(weight=0.3|0.5) | dims(64)") == ["mmr(weight=0.3) | dims(64)", "mmr(weight=0.5) | dims(64)"]
    assert read("dims(sap, 64)") == read("sap | dims(n=64)") == ["sap | dims(64)"]
    assert resolve_stored(["sap|eos"])[1][1] is None


@pytest.mark.parametrize(
    ("text", "at", "says"),
    [
        ("int8", 1, "int8 is a codec: write first what it stores"),
        ("sap | int8 | eos", 14, "a pruner after a codec"),
        ("sap | int8(x=1)", 12, "int8 has no parameter 'x'"),
        ("sap | dims", 7, "dims needs n"),
    ],
)
def test_a_codec_in_a_wrong_place_is_pointed_at(text: str, at: int, says: str) -> None:
    with pytest.raises(ExpressionError, match=f"at character {at}: .*{says}"):
        resolve_stored([text])


def test_where_only_a_pruner_is_expected_a_codec_is_refused() -> None:
    with pytest.raises(CatalogError, match=r"'sap \| int8' says how vectors are stored"):
        resolve(["sap | int8"])
