"""Puts streamed tool calls together, whatever a server's habits with index, id and name.

Habits met in the wild: no index at all, or 0 for every call; the id on the first fragment,
on each, on none, or a new one on each; the name whole on the first fragment, repeated on each,
or cut in two; arguments as fragments of text, or as an object; a call once more, whole, at the
end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from llmbroker.text import storable, storable_json
from llmbroker.wire.lenient_json import as_mapping
from llmbroker.wire.surrogates import SurrogateJoiner
from llmbroker.wire.tool_calls import (
    arguments_object,
    arguments_text,
    call_extras,
    function_extras,
    function_of,
    unique_id,
)


@dataclass(slots=True)
class _Fragment:
    index: int | None
    id: str
    name: str
    arguments: str
    is_whole: bool  # the arguments came as an object, not as a piece of text
    extras: Mapping[str, Any]
    function_extras: Mapping[str, Any]


@dataclass(slots=True)
class _OpenCall:
    position: int
    id: str
    index: int | None
    sent_id: str
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    joiner: SurrogateJoiner = field(default_factory=SurrogateJoiner)
    extras: dict[str, Any] = field(default_factory=dict)
    function_extras: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return "".join(self.arguments)

    @property
    def is_complete(self) -> bool:
        return bool(self.arguments) and arguments_object(self.text) is not None


@dataclass(frozen=True, slots=True)
class ToolCallPiece:
    """What one fragment added: to call number ``index``, with its id when it opens the call."""

    index: int
    id: str | None
    name: str | None
    arguments: str


class ToolCallAssembler:
    """Collects the fragments of all tool calls of one answer."""

    def __init__(self) -> None:
        self._calls: list[_OpenCall] = []
        self._taken: set[str] = set()

    def feed(self, raw: Mapping[str, Any], *, seed: str) -> ToolCallPiece | None:
        """Take one fragment; ``seed`` makes the id of a call that came without one."""
        fragment = _read(raw)
        call = self._call_of(fragment)
        opened = call is None
        if call is None:
            if not (fragment.id or fragment.name or fragment.arguments):
                return None
            call = self._open(fragment, seed)
        name, arguments = self._add(fragment, call)
        if not (opened or name or arguments):
            return None
        return ToolCallPiece(call.position, call.id if opened else None, name or None, arguments)

    def calls(self) -> list[dict[str, Any]]:
        """The calls so far, in the order in which they were opened."""
        return [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": call.name,
                    "arguments": arguments_text(call.text + call.joiner.flush()),
                    **call.function_extras,
                },
                **call.extras,
            }
            for call in self._calls
        ]

    def _add(self, fragment: _Fragment, call: _OpenCall) -> tuple[str, str]:
        """Add a fragment to its call; returns what is new of the name and of the arguments."""
        call.sent_id = call.sent_id or fragment.id
        call.extras.update(fragment.extras)
        call.function_extras.update(fragment.function_extras)
        name = self._add_name(call, fragment.name)
        if (fragment.is_whole and call.arguments) or _repeats(fragment, call):
            return name, ""
        arguments = call.joiner.feed(fragment.arguments)
        if arguments:
            call.arguments.append(arguments)
        return name, arguments

    def _open(self, fragment: _Fragment, seed: str) -> _OpenCall:
        position = len(self._calls)
        identity = unique_id(fragment.id, self._taken, seed=f"{seed}/{position}")
        call = _OpenCall(position, identity, fragment.index, fragment.id)
        self._calls.append(call)
        return call

    def _call_of(self, fragment: _Fragment) -> _OpenCall | None:
        """The open call that ``fragment`` goes on with, or None if it opens one."""
        call = self._candidate(fragment)
        return None if call is None or _opens_another(fragment, call) else call

    def _candidate(self, fragment: _Fragment) -> _OpenCall | None:
        newest_first = self._calls[::-1]
        placed = [call for call in newest_first if _same_place(fragment, call)]
        if fragment.id:
            known = [call for call in newest_first if call.sent_id == fragment.id]
            for call in placed if fragment.name else known:
                if call.sent_id == fragment.id:
                    return call
            # An id that comes late goes to the call at its index that has none yet.
            late = next((call for call in placed if not call.sent_id), None)
            # A name makes a new id a new call; without one it is only new on this fragment.
            return late if late or fragment.name else next(iter(placed), None)
        if not placed and not fragment.name and newest_first:
            return newest_first[0]  # a bare piece of arguments opens no call
        return next(iter(placed), None)

    @staticmethod
    def _add_name(call: _OpenCall, piece: str) -> str:
        """Add a piece of the name, unless it repeats the name; returns what was added."""
        if not piece or piece == call.name:
            return ""
        call.name += piece
        return piece


def _same_place(fragment: _Fragment, call: _OpenCall) -> bool:
    return fragment.index is None or fragment.index == call.index


def _opens_another(fragment: _Fragment, call: _OpenCall) -> bool:
    """Whether ``fragment`` is the start of another call, though its index or id say otherwise."""
    if not (fragment.name or fragment.id):
        return False
    if fragment.name in ("", call.name):
        return _starts_an_object(fragment) and call.is_complete and not _repeats(fragment, call)
    if not call.name:
        return False
    if fragment.index is None and not fragment.id:
        return True  # without an index names come whole
    return bool(call.text.strip())  # a name is never continued after the arguments began


def _repeats(fragment: _Fragment, call: _OpenCall) -> bool:
    """Whether a call that is whole is said once more: to run it twice could do harm."""
    if not fragment.id or fragment.id != call.sent_id or not _starts_an_object(fragment):
        return False
    given = arguments_object(fragment.arguments)
    return given is not None and given == arguments_object(call.text)


def _starts_an_object(fragment: _Fragment) -> bool:
    return fragment.arguments.lstrip().startswith("{")


def _read(raw: Mapping[str, Any]) -> _Fragment:
    function = function_of(raw)
    identity, name, arguments = raw.get("id"), function.get("name"), function.get("arguments")
    is_whole = not isinstance(arguments, str)
    if is_whole:
        arguments = "" if arguments is None else orjson.dumps(storable_json(arguments)).decode()
    return _Fragment(
        index=_index(raw.get("index")),
        id=storable(identity) if isinstance(identity, str) else "",
        name=storable(name) if isinstance(name, str) else "",
        arguments=str(arguments),
        is_whole=is_whole,
        extras=as_mapping(storable_json(call_extras(raw))),
        function_extras=as_mapping(storable_json(function_extras(function))),
    )


def _index(raw: object) -> int | None:
    """An index, also where it is written as a text or with a decimal point."""
    if isinstance(raw, str):
        return int(raw) if raw.isascii() and raw.isdigit() and len(raw) < 6 else None
    if isinstance(raw, float):
        return int(raw) if raw.is_integer() else None
    return raw if type(raw) is int else None
