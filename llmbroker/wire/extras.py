"""Collects the provider's own fields of a streamed message, so that they can be sent back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from llmbroker.wire.content import REASONING_FIELDS

_PIECEWISE = frozenset({*REASONING_FIELDS, "refusal"})
_PIECEWISE_IN_PARTS = frozenset({"text", "summary", "data"})


@dataclass(slots=True)
class _Fields:
    """An object that arrives in pieces: some values grow by text, of the others the last counts."""

    piecewise: frozenset[str]
    values: dict[str, Any] = field(default_factory=dict)
    pieces: dict[str, list[str]] = field(default_factory=dict)

    def add(self, name: str, value: object) -> None:
        known = self.values.get(name)
        if isinstance(value, str) and name in self.piecewise:
            self.values.setdefault(name, "")  # keeps the place
            self.pieces.setdefault(name, []).append(value)
        elif isinstance(value, dict) and isinstance(known, dict):
            self.values[name] = {**known, **value}
        elif value is not None:
            self.values[name] = value

    def joined(self) -> dict[str, Any]:
        return {**self.values, **{name: "".join(texts) for name, texts in self.pieces.items()}}


class ExtrasCollector:
    """Adds up the extra fields of all deltas of one answer.

    Reasoning comes in pieces, objects are merged, lists grow. OpenRouter streams each entry
    of ``reasoning_details`` in pieces that share an ``index``: those become one entry again.
    """

    def __init__(self) -> None:
        self._fields = _Fields(_PIECEWISE)
        self._lists: dict[str, list[Any]] = {}

    def add(self, extras: Mapping[str, Any]) -> None:
        """Take the extra fields of one delta."""
        for name, value in extras.items():
            if isinstance(value, list):
                for item in value:
                    self._add_item(self._lists.setdefault(name, []), item)
            else:
                self._fields.add(name, value)

    def collected(self) -> dict[str, Any]:
        """All fields so far."""
        lists = {
            name: [item.joined() if isinstance(item, _Fields) else item for item in items]
            for name, items in self._lists.items()
        }
        return {**self._fields.joined(), **lists}

    @staticmethod
    def _add_item(items: list[Any], item: object) -> None:
        if not isinstance(item, dict):
            items.append(item)
            return
        if not (items and isinstance(items[-1], _Fields) and _same_part(items[-1].values, item)):
            items.append(_Fields(_PIECEWISE_IN_PARTS))
        for name, value in item.items():
            items[-1].add(name, value)


def _same_part(last: Mapping[str, Any], item: Mapping[str, Any]) -> bool:
    index = item.get("index")
    return (
        type(index) is int and last.get("index") == index and last.get("type") == item.get("type")
    )
