"""Pairs tool calls with their results: each call one result, next to it, in the order asked."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from llmbroker.models import Message
from llmbroker.text import storable_json
from llmbroker.wire.profiles import Profile
from llmbroker.wire.tool_calls import sendable_arguments
from llmbroker.wire.tool_ids import IdMapper, fitting_name

NO_RESULT = "No result was recorded for this call."
NO_OUTPUT = "(no output)"


def paired(messages: Sequence[Message], profile: Profile) -> list[Message]:
    """A copy in which every tool call is followed by its result.

    A result without a call is left out, a call without a result gets one that says so, and
    what was said between a call and its results comes after them.
    """
    results = _Results(messages)
    ids = IdMapper(profile)
    copies: list[Message] = []
    for position, message in enumerate(messages):
        if message["role"] == "tool":
            continue
        calls = _calls_of(message)
        if not calls:
            copies.append(_without_calls(message))
            continue
        fitting = [_fitting(call, ids) for call in calls]
        copies.append({**message, "tool_calls": fitting})
        found = results.claim(position, [call.get("id") for call in calls])
        copies += [
            _result(result, call, profile) for result, call in zip(found, fitting, strict=True)
        ]
    return copies


class _Results:
    """The tool messages of a conversation, each to be claimed by one call."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages
        self._turns = [at for at, message in enumerate(messages) if _calls_of(message)]
        self._free = [at for at, message in enumerate(messages) if message["role"] == "tool"]

    def claim(self, turn: int, ids: Sequence[object]) -> list[Message | None]:
        """The results of the calls with ``ids``, made by the message at ``turn``.

        First by id within the turn; then by position where either side has no id; then by id
        further on, for results that came late.
        """
        following = bisect_right(self._turns, turn)
        last = following == len(self._turns)
        end = len(self._messages) if last else self._turns[following]
        found = [self._take(identity, turn, end) for identity in ids]
        for number, identity in enumerate(ids):
            if found[number] is None:
                found[number] = self._take_by_position(identity, turn, end)
        for number, identity in enumerate(ids):
            if found[number] is None:
                found[number] = self._take(identity, turn, len(self._messages))
        return found

    def _take(self, identity: object, start: int, end: int) -> Message | None:
        if not identity:
            return None
        return self._pop(
            at
            for at in self._free
            if start < at < end and self._messages[at].get("tool_call_id") == identity
        )

    def _take_by_position(self, identity: object, start: int, end: int) -> Message | None:
        return self._pop(
            at
            for at in self._free
            if start < at < end and not (identity and self._messages[at].get("tool_call_id"))
        )

    def _pop(self, positions: Iterator[int]) -> Message | None:
        at = next(positions, None)
        if at is None:
            return None
        self._free.remove(at)
        return self._messages[at]


def _calls_of(message: Message) -> list[dict[str, Any]]:
    calls = message.get("tool_calls")
    if message["role"] != "assistant" or not isinstance(calls, list):
        return []
    return [call for call in calls if isinstance(call, dict)]


def _without_calls(message: Message) -> Message:
    return {key: value for key, value in message.items() if key != "tool_calls"}


def _fitting(call: dict[str, Any], ids: IdMapper) -> dict[str, Any]:
    function = call.get("function")
    function = function if isinstance(function, dict) else {}
    return {
        **call,
        "id": ids.map(call.get("id")),
        "type": "function",
        "function": {
            **function,
            "name": fitting_name(function.get("name")),
            "arguments": sendable_arguments(function.get("arguments")),
        },
    }


def _result(message: Message | None, call: dict[str, Any], profile: Profile) -> Message:
    content = NO_RESULT if message is None else _result_content(message.get("content"))
    result: Message = {"role": "tool", "tool_call_id": call["id"], "content": content}
    if profile.tool_name:
        result["name"] = call["function"]["name"]
    return result


def _result_content(content: object) -> object:
    if isinstance(content, str):
        return content if content.strip() else NO_OUTPUT
    if isinstance(content, list) and content and all(isinstance(part, dict) for part in content):
        return content
    return NO_OUTPUT if content is None else orjson.dumps(storable_json(content)).decode()
