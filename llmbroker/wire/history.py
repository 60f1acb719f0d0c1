"""Repairs a conversation, on a copy, into what the provider at hand accepts.

Strict providers answer 400 to one gap, one foreign field or one blank text, and go on doing
so for the rest of the conversation; lenient ones lose nothing by the repair.
"""

from __future__ import annotations

from collections.abc import Sequence

from llmbroker.models import Message
from llmbroker.wire.fields import with_fields_for
from llmbroker.wire.placement import ended, led, told_as_text, without_blanks
from llmbroker.wire.profiles import Profile
from llmbroker.wire.readiness import is_ready
from llmbroker.wire.tool_turns import paired


def prepared(
    messages: Sequence[Message], *, profile: Profile, origin: str, with_tools: bool = True
) -> list[Message]:
    """``messages`` as ``origin`` accepts them; ``with_tools`` says whether tools are sent along.

    Neither the list nor a message in it is changed. Raises ValueError for a message that is
    no object with a role.
    """
    if is_ready(messages, profile, with_tools=with_tools):
        return list(messages)
    for number, message in enumerate(messages):
        if not has_role(message):
            raise ValueError(f"message {number} is no object with a role")
    copies = paired(messages, profile)
    if profile.tool_turns_need_tools and not with_tools:
        copies = told_as_text(copies)
    copies = [with_fields_for(message, profile, origin) for message in copies]
    copies = without_blanks(copies, profile)
    return ended(led(copies, profile), profile)


def has_role(message: object) -> bool:
    """Whether ``message`` is an object with a role."""
    return isinstance(message, dict) and isinstance(message.get("role"), str)
