"""Loading libraries switches the garbage collector off, and on again whatever happens."""

import gc

import pytest

from harness.loading import loading


def fail() -> None:
    assert not gc.isenabled()
    raise ImportError


def test_the_collector_rests_while_libraries_load_and_works_again_after_a_failed_import() -> None:
    with pytest.raises(ImportError), loading():
        fail()
    assert gc.isenabled()
    gc.unfreeze()
