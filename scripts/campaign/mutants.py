"""Ways to change one thing of a submission, as a careless or a hostile hand would. Each takes a generator and a mutant.

A mutant is a valid submission's JSON as an object, and its two tables as bytes; a way may also say that the file's text
itself is changed, or where the files lie.
"""

from __future__ import annotations

import copy
import io
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

MARK = "<campaign-tag onload=alert(1)>"
"""Must never stand in a page as it is."""
TEXTS = (
    "", " ", MARK, "{{ 7 * 7 }}{% raw %}", "\x00", "\x1b[31mred\x1b[0m", "\u202egnp.exe", "\u2028", "\ud800", "\ufeff",
    "é" * 300, "🧨" * 60, "x" * 5000, "../../../etc/passwd", "..", ".", "/etc/passwd", "C:\\con", "a/b", "%2e%2e%2f",
    "javascript:alert(1)", "https://x/<>", "-rf", "None", "nan", "1e400", "'; DROP TABLE", "]]>", "null\n", "Ω≈ç√",
)  # fmt: skip
NUMBERS: tuple[Any, ...] = (
    0, -0.0, -1, 1, 1.5, 1e-300, 1e300, -1e300, 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 10**400, float("nan"),
    float("inf"), float("-inf"), 0.1 + 0.2, 0.05000001, 1e-9, 100, 1000, 2_000_000_000,
)  # fmt: skip
OTHERS: tuple[Any, ...] = (None, True, False, [], {}, [[]], {"": ""}, [None] * 50, {"a": {"b": {"c": 1}}})


@dataclass
class Mutant:
    """What is written in the end."""

    content: Any
    per_query: bytes
    kept: bytes
    text: Callable[[bytes], bytes] | None = None
    """A change of the JSON file's bytes."""
    forged: bool = False
    """Whether checksums and the id are made to fit."""
    place: str = ""
    """What is done to the files' place."""
    what: list[str] = field(default_factory=list)


def spots(value: Any, at: tuple = ()) -> Iterator[tuple]:
    """Paths of everything in a JSON value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inside:
        yield (*at, key)
        yield from spots(one, (*at, key))


def holder(value: Any, path: tuple) -> Any:
    for key in path[:-1]:
        value = value[key]
    return value


def _spot(rng: random.Random, mutant: Mutant, kind: type | tuple[type, ...] | None = None) -> tuple:
    found = [p for p in spots(mutant.content) if kind is None or isinstance(holder(mutant.content, p)[p[-1]], kind)]
    return rng.choice(found or [("format",)])


def _set(mutant: Mutant, path: tuple, value: Any) -> None:
    holder(mutant.content, path)[path[-1]] = copy.deepcopy(value)  # nothing stands twice
    mutant.what.append(f"{'.'.join(map(str, path))} = {str(value)[:40]!r}")


def other_type(rng: random.Random, m: Mutant) -> None:
    _set(m, _spot(rng, m), rng.choice([*OTHERS, rng.choice(TEXTS), rng.choice(NUMBERS)]))


def extreme_number(rng: random.Random, m: Mutant) -> None:
    _set(m, _spot(rng, m, (int, float)), rng.choice(NUMBERS))


def strange_text(rng: random.Random, m: Mutant) -> None:
    _set(m, _spot(rng, m, str), rng.choice(TEXTS))


def longer_text(rng: random.Random, m: Mutant) -> None:
    path = _spot(rng, m, str)
    _set(m, path, holder(m.content, path)[path[-1]] + rng.choice(TEXTS))


def nudged_figure(rng: random.Random, m: Mutant) -> None:
    path = _spot(rng, m, float)
    _set(m, path, holder(m.content, path)[path[-1]] * (1 + rng.choice((-1e-3, 1e-3, 1e-9, 0.5, 2))))


def deletion(rng: random.Random, m: Mutant) -> None:
    path = _spot(rng, m)
    del holder(m.content, path)[path[-1]]
    m.what.append(f"without {'.'.join(map(str, path))}")


def duplicate(rng: random.Random, m: Mutant) -> None:
    path = _spot(rng, m, list)
    found = holder(m.content, path)[path[-1]]
    found.insert(rng.randrange(len(found) + 1), copy.deepcopy(rng.choice(found)) if found else "x")
    m.what.append(f"one more in {'.'.join(map(str, path))}")


def swapped(rng: random.Random, m: Mutant) -> None:
    a, b = _spot(rng, m), _spot(rng, m)
    if a[: len(b)] == b or b[: len(a)] == a:
        return
    one, other = holder(m.content, a), holder(m.content, b)
    one[a[-1]], other[b[-1]] = other[b[-1]], one[a[-1]]
    m.what.append(f"{a} and {b} swapped")


def shuffled_cells(rng: random.Random, m: Mutant) -> None:
    rng.shuffle(m.content["cells"])
    m.what.append("cells in another order")


def unknown_key(rng: random.Random, m: Mutant) -> None:
    path = _spot(rng, m, dict)
    found = holder(m.content, path)[path[-1]]
    found.update({f"{rng.choice(TEXTS)}{i}": 0 for i in range(rng.choice((1, 1, 30, 3000)))})
    m.what.append("unknown keys")


def changed_text(rng: random.Random, m: Mutant) -> None:
    """The file's bytes: no JSON any more, or almost."""
    n = rng.randrange(1 << 30)
    ways: dict[str, Callable[[bytes], bytes]] = {
        "cut short": lambda t: t[: n % len(t)],
        "a byte changed": lambda t: t[: n % len(t)] + bytes([n % 256]) + t[n % len(t) + 1 :],
        "a mark before it": lambda t: b"\xef\xbb\xbf" + t,
        "sixteen bits": lambda t: t.decode().encode("utf-16"),
        "twice": lambda t: t + t,
        "nested": lambda t: b"[" * 50_000 + t + b"]" * 50_000,
        "a key twice": lambda t: t.replace(b'"format"', b'"format": 1, "format"', 1),
        "many digits": lambda t: t.replace(b'"format": 1', b'"format": ' + b"1" * 5000, 1),
        "empty": lambda t: b"",
        "zeros": lambda t: b"\x00" * 5000,
        "comments": lambda t: b"// hello\n" + t,
    }
    how = rng.choice(list(ways))
    m.text = ways[how]
    m.what.append(f"text: {how}")


def table_bytes(rng: random.Random, m: Mutant) -> None:
    name = rng.choice(("per_query", "kept"))
    data = bytearray(getattr(m, name))
    how = rng.choice(("flipped", "cut short", "empty", "noise", "swapped", "twice"))
    if how == "flipped":
        for _ in range(rng.choice((1, 1, 8, 200))):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif how == "cut short":
        data = data[: rng.randrange(len(data))]
    elif how == "noise":
        data = bytearray(rng.randbytes(rng.randrange(1, 3000)))
    elif how == "swapped":
        m.per_query, m.kept = m.kept, m.per_query
        data = bytearray(getattr(m, name))
    else:
        data = data + data if how == "twice" else bytearray()
    setattr(m, name, bytes(data))
    m.what.append(f"{name}: {how}")


def table_rows(rng: random.Random, m: Mutant) -> None:
    """The table is read, changed, and written again, as one who knows the format does."""
    name = rng.choice(("per_query", "per_query", "kept"))
    table = pq.read_table(io.BytesIO(getattr(m, name)))
    rows, column = table.to_pylist(), rng.choice(table.column_names)
    how = rng.choice(
        ("value", "value", "value", "lost", "doubled", "shuffled", "renamed", "gone", "more", "type", "none")
    )
    schema = table.schema
    some = rng.sample(range(len(rows)), min(len(rows), rng.choice((1, 3, len(rows)))))
    if how in ("value", "none"):
        for i in some:
            rows[i][column] = None if how == "none" else _other(rng, rows, i, column)
    elif how == "lost":
        rows = [row for i, row in enumerate(rows) if i not in some]
    elif how == "doubled":
        rows += [rows[i] for i in some]
    elif how == "shuffled":
        rng.shuffle(rows)
    try:
        table = pa.Table.from_pylist(rows, schema=schema)
        if how == "renamed":
            table = table.rename_columns([rng.choice(TEXTS) if c == column else c for c in table.column_names])
        elif how == "gone":
            table = table.drop_columns([column])
        elif how == "more":
            table = table.append_column(rng.choice(("extra", column)), table[column])
        elif how == "type":
            table = table.set_column(table.column_names.index(column), column, pa.array([str(r[column]) for r in rows]))
        packed = io.BytesIO()
        pq.write_table(table, packed, compression=rng.choice(("zstd", "none", "gzip")))
    except (pa.ArrowException, ValueError, TypeError, OverflowError, UnicodeError):
        return  # no such table can be written: nothing is changed
    setattr(m, name, packed.getvalue())
    m.what.append(f"{name}.{column}: {how}")


def _other(rng: random.Random, rows: list[dict], i: int, column: str) -> Any:
    """Another value of the same kind."""
    value = rows[i][column]
    if isinstance(value, list):
        return rng.choice(
            (value[::-1], value[:-1], value + value, [], rng.choice(rows)[column], value[:1] * len(value))
        )
    if isinstance(value, str):
        return rng.choice((rng.choice(TEXTS[:10]), rng.choice(rows)[column], value + "x"))
    if isinstance(value, int):
        return rng.choice((0, -1, 1, 2**31 - 1, -(2**31), rng.choice(rows)[column]))
    return rng.choice((0.0, 1.0, -1.0, 1e300, float("nan"), float("inf"), 0.5, rng.choice(rows)[column]))


def other_place(rng: random.Random, m: Mutant) -> None:
    """Where its files lie, or what else lies there."""
    m.place = rng.choice(
        ("link", "folder", "other name", "no per_query", "no kept", "linked table", "extra file", "hidden", "deeper")
    )
    m.what.append(f"place: {m.place}")


WAYS: dict[str, tuple[Callable[[random.Random, Mutant], None], ...]] = {
    "types": (other_type,),
    "extremes": (extreme_number, nudged_figure),
    "texts": (strange_text, longer_text, changed_text),
    "deletions": (deletion,),
    "duplicates": (duplicate, unknown_key),
    "swaps": (swapped, shuffled_cells),
    "tables": (table_rows, table_rows, table_bytes),
    "places": (other_place,),
}


def mutate(rng: random.Random, content: Any, per_query: bytes, kept: bytes) -> Mutant:
    """One to three changes of a submission; half of them by a hand that makes checksums and id fit."""
    mutant = Mutant(json.loads(json.dumps(content)), per_query, kept, forged=rng.random() < 0.5)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        way = rng.choice(WAYS[rng.choice(list(WAYS))])
        try:
            way(rng, mutant)
        except (KeyError, IndexError, TypeError, AttributeError, ValueError, OSError, pa.ArrowException):
            continue  # an earlier change took away what this one wants to change
    return mutant
