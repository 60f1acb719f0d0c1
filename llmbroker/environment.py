"""Ports for a bare script: keys, and a model server of one's own, from environment and ``.env``."""

from __future__ import annotations

import codecs
import logging
import os
import re
from pathlib import Path

from llmbroker.catalog.fields import base_url_fault
from llmbroker.errors import LLMBrokerError
from llmbroker.models import ApiKey, KeySource, LLMConfig

logger = logging.getLogger(__name__)

BASE_URL, MODEL, API_KEY = "LLMBROKER_BASE_URL", "LLMBROKER_MODEL", "LLMBROKER_API_KEY"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Our own reader, because the engine depends on no dotenv package. It is strict: one assignment
# a line, the value bare or quoted, nothing expanded; a "#" after white space starts a comment.
_ASSIGNMENT = re.compile(
    r"""\s* (?:export\s+)? (?P<name>[A-Za-z_][A-Za-z0-9_]*) \s*=\s*
    (?: "(?P<double>(?:[^"\\]|\\.)*)"
      | '(?P<single>[^']*)'
      | (?P<bare>(?:[^\s"'\#]\S*(?:\s+[^\s\#]\S*)*)?)
    ) (?:\s+\#.*|\s*)""",
    re.VERBOSE,
)
_ESCAPED = re.compile(r"\\(.)")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
_LINE_END = re.compile(r"\r\n|\r|\n")


def parse_env(text: str, *, source: str = ".env") -> dict[str, str]:
    r"""The assignments in ``text``; a blank one never hides an earlier value.

    >>> parse_env('export A="one" # note\r\nB=two#2\nB=')
    {'A': 'one', 'B': 'two#2'}
    """
    values: dict[str, str] = {}
    for number, line in enumerate(_LINE_END.split(text), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _ASSIGNMENT.fullmatch(line)
        if match is None:
            # The line itself stays out of the log: it may hold a key.
            logger.warning("%s: line %d is no NAME=value and was passed over", source, number)
        elif value := _value(match).strip():
            values[match["name"]] = value
    return values


class EnvironmentSecrets:
    """Keys from environment variables, and for those not set there from ``.env`` in ``home``.

    Without ``home`` it is the ``.env`` of the working directory. The file is read again when
    it changes. Keys of a single scope ("scope/REF") are never looked for here.
    """

    def __init__(self, home: str | Path | None = None) -> None:
        self._path = Path(home or ".").expanduser().absolute() / ".env"
        self._stamp: tuple[int, int] | None = None
        self._file_values: dict[str, str] = {}
        self._seen: dict[str, tuple[str, int]] = {}

    def __repr__(self) -> str:
        return f"EnvironmentSecrets({str(self._path.parent)!r})"

    def value(self, name: str) -> str | None:
        """The trimmed value of a variable; None if there is none or it is blank."""
        if not _NAME.fullmatch(name):
            return None
        return os.environ.get(name, "").strip() or self._from_file().get(name)

    async def resolve(self, ref: str) -> str:
        """The key called ``ref``; KeyError if it is not set."""
        value = self.value(ref)
        if value is None:
            raise KeyError(ref)
        return value

    async def keys(self, ref: str, *, scope: str | None) -> list[ApiKey]:  # noqa: ARG002
        """The key that everybody pays with, whatever the scope."""
        value = self.value(ref)
        if value is None:
            return []
        return [ApiKey(self._identity(ref, value), value, KeySource.INSTALLATION)]

    async def refs(self, prefix: str = "") -> frozenset[str]:
        """The names of all variables with a value that start with ``prefix``."""
        names = {*os.environ, *self._from_file()}
        return frozenset(name for name in names if name.startswith(prefix) and self.value(name))

    def _identity(self, ref: str, value: str) -> str:
        # A replaced key needs another id: what was learnt about the refused one must not stick.
        seen, generation = self._seen.get(ref, (value, 1))
        if seen != value:
            generation += 1
        self._seen[ref] = (value, generation)
        return ref if generation == 1 else f"{ref}@{generation}"

    def _from_file(self) -> dict[str, str]:
        try:
            info = self._path.stat()
        except OSError:
            return {}
        stamp = (info.st_mtime_ns, info.st_size)
        if stamp != self._stamp:
            self._file_values = _read_env(self._path)
            self._stamp = stamp
        return self._file_values


def environment_models(home: str | Path | None = None) -> list[LLMConfig]:
    """The server that LLMBROKER_BASE_URL names, say a local Ollama; empty without that variable.

    LLMBROKER_MODEL is the model to ask there; LLMBROKER_API_KEY may be missing, and then the
    server is called without a key. Having been chosen by hand, it is expected to be the best.
    Raises LLMBrokerError where the URL is none, or the model is missing.
    """
    settings = EnvironmentSecrets(home)
    base_url, model = settings.value(BASE_URL), settings.value(MODEL)
    if base_url is None:
        return []
    if fault := base_url_fault(base_url):
        raise LLMBrokerError(f"{BASE_URL} {fault}, as in http://localhost:11434/v1")
    if model is None:
        raise LLMBrokerError(f"{BASE_URL} is set, so {MODEL} must name the model to ask there")
    key_ref = API_KEY if settings.value(API_KEY) else ""
    return [LLMConfig(model, base_url, model, key_ref, weight=1.0)]


def _value(match: re.Match[str]) -> str:
    if match["double"] is not None:
        return _ESCAPED.sub(lambda found: _ESCAPES.get(found[1], found[1]), match["double"])
    return match["single"] or match["bare"] or ""


def _read_env(path: Path) -> dict[str, str]:
    if not path.is_file():  # a virtual environment may be called .env
        return {}
    try:
        content = path.read_bytes()
        # Windows PowerShell writes UTF-16 where its output is redirected into a file.
        wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        text = content.decode("utf-16" if wide else "utf-8-sig")
    except OSError as error:
        raise LLMBrokerError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError:
        raise LLMBrokerError(f"{path}: is not UTF-8 text") from None
    return parse_env(text, source=str(path))
