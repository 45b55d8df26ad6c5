"""A method as bytes that another process or machine makes the same method of: parameters, code, and what it learned.

A method of a user's file travels with that file's text (`plugins.InFile`), one of a notebook cell or a script with its
functions (cloudpickle). Built-in ones, and those of installed packages, go by name: what reads them must have the same
packages. Reading runs the method's code, so only who would run the method may read it.
"""

from __future__ import annotations

import pickle
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

import cloudpickle

from . import plugins
from .contract import Pruner
from .errors import PrunerError
from .identity import all_parts
from .source import PROJECT


def packed(pruner: Pruner) -> bytes:
    """`pruner` as bytes, which hold all that is not installed."""
    own = [module for module in map(sys.modules.get, _modules(pruner)) if module and _is_own(module)]
    for module in own:
        cloudpickle.register_pickle_by_value(module)
    try:
        places = [plugins.address(type(part)) for part in all_parts(pruner)]
        files = [place for place in places if isinstance(place, plugins.InFile)]
        return pickle.dumps((files, cloudpickle.dumps(pruner)))
    except Exception as error:  # whatever a class raises when it cannot be pickled
        raise PrunerError(
            f"{pruner} cannot be sent to a process of its own ({type(error).__name__}: {error}); let it hold numbers, "
            "texts, tensors, arrays, or lists and dictionaries of these, and open files and locks where it uses them"
        ) from error
    finally:
        for module in own:
            cloudpickle.unregister_pickle_by_value(module)


def unpacked(data: bytes) -> Pruner:
    """The pruner that was packed. Its code may run."""
    files, method = pickle.loads(data)
    for file in files:  # first: what the method learned may be of a class of its file
        file.load()
    return pickle.loads(method)


def _modules(pruner: Pruner) -> set[str]:
    own = {base.__module__ for base in type(pruner).__mro__}
    return own.union(*(_modules(part) for part in pruner.parts()))


def _is_own(module: ModuleType) -> bool:
    """Whether a module is neither installed, nor this project's, nor run from a file that travels as text."""
    if module.__name__.split(".")[0] in PROJECT or plugins.FINGERPRINT in vars(module):
        return False
    file = getattr(module, "__file__", None)
    installed = [Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib", "stdlib")]
    return file is not None and not any(Path(file).resolve().is_relative_to(folder) for folder in installed)
