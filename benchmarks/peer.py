"""The peer in an environment of its own: it has our package's name."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

REQUIREMENT = "llmbroker==1.11.0"


def python(folder: Path) -> Path:
    """The interpreter in ``folder`` that imports the peer; makes the environment if needed."""
    interpreter = folder / "bin" / "python"
    done = folder / f"{REQUIREMENT}.installed"
    if not done.exists():
        print(f"installing {REQUIREMENT} into {folder}", file=sys.stderr)
        venv.create(folder, with_pip=True, clear=True)
        install = [interpreter, "-m", "pip", "install", "--quiet", REQUIREMENT]
        subprocess.run(install, check=True)
        done.touch()
    return interpreter
