"""Ids and names of tool calls in the form that a provider accepts."""

from __future__ import annotations

import hashlib
import re
import string
from functools import lru_cache

from llmbroker.wire.profiles import Profile

TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What every provider accepts as the name of a function."""

_UNFIT = re.compile(r"[^A-Za-z0-9_-]+")
_ALPHABET = string.ascii_letters + string.digits


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def id_pattern(profile: Profile) -> re.Pattern[str]:
    """The ids that the provider of ``profile`` accepts."""
    return _compiled(profile.tool_id)


def fitting_name(name: object) -> str:
    """``name`` if it is acceptable, else the nearest to it that is.

    >>> fitting_name("today"), fitting_name("files.read"), fitting_name("")
    ('today', 'files_read', 'unknown')
    """
    text = name if isinstance(name, str) else ""
    if TOOL_NAME.fullmatch(text):
        return text
    return _UNFIT.sub("_", text)[:64].strip("_") or "unknown"


class IdMapper:
    """Gives every tool call of one conversation an id that fits and occurs once.

    An id that does both is kept. The others are made from the id itself, so the same
    conversation always maps to the same ids, which providers' prompt caches need.
    """

    def __init__(self, profile: Profile) -> None:
        self._pattern = id_pattern(profile)
        self._length = profile.tool_id_length
        self._taken: set[str] = set()

    def map(self, identity: object) -> str:
        """The id to send for the next call, which the conversation knows as ``identity``."""
        given = identity if isinstance(identity, str) else ""
        attempt = 0
        fitting = given
        while fitting in self._taken or not self._pattern.fullmatch(fitting):
            fitting = _made(f"{given}/{attempt}", self._length)
            attempt += 1
        self._taken.add(fitting)
        return fitting


def _made(seed: str, length: int) -> str:
    digest = hashlib.sha256(seed.encode("utf-8", "replace")).digest()
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:length])
