"""Where messages may stand and whether they may be blank: the last steps of the repair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llmbroker.models import Message
from llmbroker.wire.profiles import Profile

CONTINUE = "Continue."
BLANK = "(empty message)"
_NOTED = "Noted."


def told_as_text(messages: Sequence[Message]) -> list[Message]:
    """Tool calls and results told in words, for a request that carries no tools."""
    told: list[Message] = []
    names: dict[str, str] = {}
    for message in messages:
        if message["role"] == "tool":
            name = names.get(message["tool_call_id"], "tool")
            told.append({"role": "user", "content": f"Result of {name}: {_text(message)}"})
        elif message.get("tool_calls"):
            calls = message["tool_calls"]
            names |= {call["id"]: call["function"]["name"] for call in calls}
            lines = [_text(message)] if _text(message).strip() else []
            lines += [
                f"Called {call['function']['name']} with {call['function']['arguments']}"
                for call in calls
            ]
            told.append({"role": "assistant", "content": "\n".join(lines)})
        else:
            told.append(message)
    return told


def without_blanks(messages: Sequence[Message], profile: Profile) -> list[Message]:
    """Blank messages dropped or marked, as far as the provider minds them."""
    mended = (_without_blank(message, profile) for message in messages)
    return [message for message in mended if message is not None]


def led(messages: Sequence[Message], profile: Profile) -> list[Message]:
    """One system message, at the start, where the provider takes it nowhere else."""
    system = [message for message in messages if message["role"] == "system"]
    if profile.system == "anywhere" or not system or (len(system) == 1 and messages[0] in system):
        return list(messages)
    others = [message for message in messages if message["role"] != "system"]
    return [{"role": "system", "content": _joined(system)}, *others]


def ended(messages: Sequence[Message], profile: Profile) -> list[Message]:
    """Roles in an order that the provider accepts, up to who speaks last."""
    ordered: list[Message] = []
    for message in messages:
        after_tools = bool(ordered) and ordered[-1]["role"] == "tool"
        if profile.assistant_after_tools and after_tools and message["role"] == "user":
            ordered.append({"role": "assistant", "content": _NOTED})
        ordered.append(message)
    if not ordered or ordered[-1]["role"] != "assistant" or "prefix" in ordered[-1]:
        return ordered
    if profile.prefill == "prefix":
        ordered[-1] = {**ordered[-1], "prefix": True}
    elif profile.prefill == "refused":
        ordered.append({"role": "user", "content": CONTINUE})
    return ordered


def _without_blank(message: Message, profile: Profile) -> Message | None:
    role, content = message["role"], message.get("content")
    if role == "tool" or not _is_blank(content):
        return _without_blank_parts(message, profile)
    if message.get("tool_calls"):
        return {**message, "content": None}
    if role == "assistant" and (content is None or not profile.blank_text):
        return None
    if profile.blank_text and content is not None:
        return message
    return {**message, "content": BLANK} if role == "user" else None


def _without_blank_parts(message: Message, profile: Profile) -> Message:
    content = message.get("content")
    if profile.blank_text or not isinstance(content, list):
        return message
    return {**message, "content": [part for part in content if not _is_blank([part])]}


def _is_blank(content: object) -> bool:
    if isinstance(content, list):
        return all(isinstance(part, dict) and _is_blank_part(part) for part in content)
    return content is None or (isinstance(content, str) and not content.strip())


def _is_blank_part(part: dict[str, Any]) -> bool:
    return part.get("type") == "text" and not str(part.get("text") or "").strip()


def _joined(messages: Sequence[Message]) -> object:
    contents = [message.get("content") for message in messages]
    if all(isinstance(content, str) for content in contents):
        return "\n\n".join(str(content) for content in contents)
    parts: list[Any] = []
    for content in contents:
        parts += content if isinstance(content, list) else [{"type": "text", "text": content}]
    return parts


def _text(message: Message) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""
