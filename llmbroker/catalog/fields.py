"""One TOML table, read field by field; every fault names the file, the table and the field.

No message repeats a value: what was pasted into the wrong field may be a key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar, cast, overload
from urllib.parse import urlsplit

from llmbroker.errors import LLMBrokerError

T = TypeVar("T")

_NAMES: Mapping[type, str] = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    dict: "a table",
    list: "a list",
}
_KEY_REF = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Table:
    """The fields of one table that were not read yet."""

    def __init__(self, values: object, where: str) -> None:
        if not isinstance(values, dict):
            raise LLMBrokerError(f"{where} must be a table")
        self.where = where
        self._unread: dict[str, object] = dict(values)
        self._known: list[str] = []

    def inherit(self, **defaults: object) -> None:
        """Fields that hold where the table itself has none."""
        self._unread = {**defaults, **self._unread}

    @overload
    def take(self, field: str, kind: type[T]) -> T | None: ...
    @overload
    def take(self, field: str, kind: type[T], default: T) -> T: ...
    def take(self, field: str, kind: type[T], default: T | None = None) -> T | None:
        """The value of an optional field."""
        self._known.append(field)
        if field not in self._unread:
            return default
        value = self._unread.pop(field)
        accepted = (int, float) if kind is float else kind
        if isinstance(value, bool) or not isinstance(value, accepted):
            raise self.fault(f"{field} must be {_NAMES.get(kind, f'a {kind.__name__}')}")
        return cast("T", value)

    def require(self, field: str) -> str:
        """The text of a field that must be there and not be blank."""
        value = self.take(field, str, "").strip()
        if not value:
            raise self.fault(f"{field} is missing")
        return value

    def texts(self, field: str) -> tuple[str, ...]:
        """The values of an optional list of strings."""
        values = self.take(field, list, [])
        if not all(isinstance(value, str) for value in values):
            raise self.fault(f"{field} must be a list of strings")
        return tuple(values)

    def finish(self) -> None:
        """Refuse fields that nobody asked for: a misspelt one would be silently without effect."""
        if self._unread:
            unknown = ", ".join(sorted(self._unread))
            raise self.fault(f"unknown field {unknown} (known: {', '.join(self._known)})")

    def fault(self, text: str) -> LLMBrokerError:
        """The error that says ``text`` about this table."""
        return LLMBrokerError(f"{self.where}: {text}")


def base_url_fault(url: str) -> str | None:
    """What is wrong with an endpoint's address, or None.

    >>> base_url_fault("localhost:11434/v1")
    'must start with http:// or https:// and name a host'
    """
    try:
        parts = urlsplit(url)
        named = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return "is no address"
    if parts.scheme not in ("http", "https") or not named:
        return "must start with http:// or https:// and name a host"
    if parts.username is not None or parts.password is not None:
        return "must not hold a user name or password"
    if parts.query or parts.fragment:
        return "must not have a query or fragment"
    return None


def key_ref_fault(ref: str) -> str | None:
    """What is wrong with the name of a key, or None; an empty one means that no key is needed."""
    if not ref or _KEY_REF.fullmatch(ref):
        return None
    return "must be a name like OPENAI_API_KEY, never the key itself"
