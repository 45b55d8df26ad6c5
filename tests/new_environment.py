"""A virtual environment for tests that install something: nothing is downloaded."""

import subprocess
import sys
import venv
from pathlib import Path


def new_environment(folder: Path, *more: Path) -> Path:
    """Its python. It sees the packages that this one sees, and the folders `more`; the project only if named there."""
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    seen = [*map(str, more), *(path for path in sys.path if path.endswith("site-packages"))]
    (site / "seen.pth").write_text("\n".join(seen))
    return folder / "bin" / "python"


def install(python: Path, what: Path) -> None:
    """Install a wheel or a source folder, without its dependencies."""
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.check_call([*pip, "--no-build-isolation", str(what)])
