"""Tables from outside: whatever a file says of itself, reading it ends in a table or in words."""

from __future__ import annotations

import subprocess
import sys

import pytest

from harness import parquet

FORM = {"name": "text", "ranking": "texts", "value": "float32", "counts": "integers"}
ROWS = {"name": ["a", "b"], "ranking": [["p", "q"], ["q"]], "value": [0.5, 1.0], "counts": [[1, 2], [3]]}
EVERY_BIT = """
import sys
from pathlib import Path
from harness import parquet
path, form = Path(sys.argv[1]), {form!r}
whole = path.read_bytes()
footer = int.from_bytes(whole[-8:-4], "little")
for at in range(len(whole) - 8 - footer, len(whole)):
    for bit in range(8):
        changed = bytearray(whole)
        changed[at] ^= 1 << bit
        path.write_bytes(changed)
        try:
            parquet.read(path, form)
        except parquet.TableError:
            pass
print("all read")
"""


def test_no_flipped_bit_of_a_footer_ends_the_process(tmp_path) -> None:
    """Arrow aborts where a footer's histogram of levels does not fit its schema, and Python cannot catch that."""
    path = tmp_path / "table.parquet"
    path.write_bytes(parquet.pack(ROWS, FORM))
    assert parquet.read(path, FORM).num_rows == 2
    code = EVERY_BIT.format(form=FORM)
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "all read\n"), done.stderr[-300:]


@pytest.mark.parametrize(("limit", "most", "says"), [("MAX_VALUES", 2, "3 values"), ("MAX_TEXTS", 1, "3 texts in 2")])
def test_what_was_read_is_counted_not_what_the_footer_says(tmp_path, monkeypatch, limit, most, says) -> None:
    path = tmp_path / "table.parquet"
    path.write_bytes(parquet.pack(ROWS, FORM))
    monkeypatch.setattr(parquet, limit, most)
    with pytest.raises(parquet.TableError, match=says):
        parquet.read(path, FORM)
