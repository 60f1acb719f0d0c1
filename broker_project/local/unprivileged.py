"""Running a program as nobody: PostgreSQL refuses to run as root."""

import os
import pwd
import shutil
import stat
from pathlib import Path
from typing import TypedDict

NAME = "nobody"  # it exists everywhere and owns nothing else


class Account(TypedDict, total=False):
    """Arguments of subprocess.run."""

    user: int
    group: int
    extra_groups: list[int]


def account() -> Account:
    """Whom a server runs as: ourselves, unless we are root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam(NAME)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def give(*paths: Path) -> None:
    """Make the server's account the owner."""
    if os.geteuid() == 0:
        for path in paths:
            shutil.chown(path, NAME)


def let_pass(*paths: Path) -> None:
    """Let the server's account reach ``paths``: traverse their parents, not list them."""
    if os.geteuid() == 0:
        for parent in {parent for path in paths for parent in path.parents}:
            _add(parent, stat.S_IXOTH)


def let_read(tree: Path) -> None:
    """Undo a strict umask at installation, for program files."""
    if os.geteuid() == 0:
        for path in (tree, *tree.rglob("*")):
            runs = path.stat().st_mode & stat.S_IXUSR
            _add(path, stat.S_IROTH | (stat.S_IXOTH if runs else 0))


def _add(path: Path, bits: int) -> None:
    mode = path.stat().st_mode
    if mode & bits != bits:
        path.chmod(mode | bits)
