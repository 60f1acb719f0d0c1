"""Puts streamed tool calls together, whatever a server's habits with index, id and name.

Habits met in the wild: no index at all, or 0 for every call; the id on the first fragment,
on each, or on none; the name whole on the first fragment, repeated on each, or cut in two;
arguments as fragments of text, or as an object.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from llmbroker.text import storable, storable_json
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
    call: Mapping[str, Any]
    function: Mapping[str, Any]


@dataclass(slots=True)
class _OpenCall:
    position: int
    id: str
    index: int | None
    sent_id: str
    name: str = ""
    arguments: list[str] = field(default_factory=list)
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
        if not call.sent_id:
            call.sent_id = fragment.id
        name = self._add_name(call, fragment.name)
        arguments = "" if fragment.is_whole and call.arguments else fragment.arguments
        if arguments:
            call.arguments.append(arguments)
        call.extras.update(call_extras(fragment.call))
        call.function_extras.update(function_extras(fragment.function))
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
                    "arguments": arguments_text(call.text),
                    **call.function_extras,
                },
                **call.extras,
            }
            for call in self._calls
        ]

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
        if fragment.id:
            for call in newest_first:
                if call.sent_id == fragment.id and fragment.index in (None, call.index):
                    return call
            # An id that comes late goes to the call at its index that has none yet.
            return next(
                (call for call in newest_first if not call.sent_id and _same_place(fragment, call)),
                None,
            )
        if fragment.index is None:
            return newest_first[0] if newest_first else None
        found = next((call for call in newest_first if call.index == fragment.index), None)
        if found is None and not fragment.name and newest_first:
            return newest_first[0]  # a bare piece of arguments opens no call
        return found

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
    if not fragment.name or not call.name:
        return False
    if fragment.name == call.name:
        return fragment.arguments.lstrip().startswith("{") and call.is_complete
    if fragment.index is None and not fragment.id:
        return True  # without an index names come whole
    return bool(call.text.strip())  # a name is never continued after the arguments began


def _read(raw: Mapping[str, Any]) -> _Fragment:
    function = function_of(raw)
    index, identity, name = raw.get("index"), raw.get("id"), function.get("name")
    arguments = function.get("arguments")
    is_whole = not isinstance(arguments, str)
    if is_whole:
        arguments = "" if arguments is None else orjson.dumps(storable_json(arguments)).decode()
    return _Fragment(
        index=index if type(index) is int else None,
        id=identity if isinstance(identity, str) else "",
        name=storable(name) if isinstance(name, str) else "",
        arguments=storable(str(arguments)),
        is_whole=is_whole,
        call=raw,
        function=function,
    )
