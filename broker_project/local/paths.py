"""Where a local trial keeps its data: one folder, in no version control."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def data_dir() -> Path:
    """The folder named by BROKER_DATA_DIR, else ``.data`` of the checkout."""
    return Path(os.environ.get("BROKER_DATA_DIR") or ROOT / ".data").absolute()


def log_dir() -> Path:
    """The folder of the log files, made if it is not there yet."""
    folder = data_dir() / "log"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def tail(log: Path, lines: int = 15) -> str:
    """The end of a log file; empty if there is none."""
    if not log.exists():
        return ""
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
