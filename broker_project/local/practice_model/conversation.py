"""The next assistant message for a conversation: a tool call or the answer. No I/O, no state."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from broker_project.local.practice_model.answers import Finding, Outcome, answer, finding
from broker_project.local.practice_model.questions import Kind, Want, wants_of
from broker_project.local.practice_model.tools import Schema, arguments_for, fitting

Message = Mapping[str, Any]


@dataclass(frozen=True)
class ToolCall:
    """One tool that the model asks for."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class _Done:
    """A tool call of this turn with its result."""

    name: str
    arguments: object
    result: str


def respond(
    messages: Sequence[Message], tools: Sequence[Schema], tool_choice: object = "auto"
) -> str | ToolCall:
    """Ask for the first tool still missing; answer once every want has its result."""
    question, turn = _current_turn(messages)
    wants = wants_of(question)
    done = list(_done(turn))
    available = _available(tools, tool_choice)
    findings = []
    for want in wants:
        function = fitting(want.kind, available)
        if function is None or not _complete(want):
            findings.append(Finding(want, Outcome.NO_TOOL if _complete(want) else Outcome.NO_CITY))
            continue
        arguments = arguments_for(want, function, question)
        result = _result(done, function["name"], arguments)
        if result is None:
            return _call(messages, function, arguments)
        findings.append(finding(want, result))
    if available and not done and _must_call(tool_choice):
        function = available[0]["function"]
        return _call(messages, function, arguments_for(Want(Kind.DATE), function, question))
    return answer(question, findings)


def text_of(content: object) -> str:
    """A message's text; content may be a list of parts."""
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        return "\n".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _current_turn(messages: Sequence[Message]) -> tuple[str, Sequence[Message]]:
    """The newest user message and what followed it."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].get("role") == "user":
            return text_of(messages[index].get("content")), messages[index + 1 :]
    return "", messages


def _done(turn: Sequence[Message]) -> Iterator[_Done]:
    results = {
        message.get("tool_call_id"): text_of(message.get("content"))
        for message in turn
        if message.get("role") == "tool"
    }
    for message in turn:
        for call in message.get("tool_calls") or ():
            if call.get("id") in results:
                function = call["function"]
                arguments = _loads(function["arguments"])
                yield _Done(function["name"], arguments, results[call["id"]])


def _result(done: Sequence[_Done], name: str, arguments: Schema) -> str | None:
    for call in done:
        if call.name == name and call.arguments == arguments:
            return call.result
    return None


def _call(messages: Sequence[Message], function: Schema, arguments: Schema) -> ToolCall:
    # Numbered over the whole conversation, so that no id repeats in it.
    number = 1 + sum(len(message.get("tool_calls") or ()) for message in messages)
    return ToolCall(f"call_{number}", function["name"], json.dumps(arguments, ensure_ascii=False))


def _complete(want: Want) -> bool:
    return want.kind is not Kind.WEATHER or bool(want.subject)


def _must_call(tool_choice: object) -> bool:
    return tool_choice == "required" or isinstance(tool_choice, dict)


def _loads(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _available(tools: Sequence[Schema], tool_choice: object) -> Sequence[Schema]:
    if tool_choice == "none":
        return ()
    if isinstance(tool_choice, dict):
        wanted = tool_choice.get("function", {}).get("name")
        return [tool for tool in tools if tool.get("function", {}).get("name") == wanted]
    return tools
