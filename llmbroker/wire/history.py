"""Repairs the conversation, on a copy, into what the provider at hand accepts."""

from __future__ import annotations

from collections.abc import Sequence

from llmbroker.models import Message
from llmbroker.wire.profiles import Profile


def prepared(messages: Sequence[Message], *, profile: Profile, origin: str) -> list[Message]:
    """``messages`` as ``origin`` accepts them. The messages given are never changed."""
    return [
        {name: value for name, value in message.items() if name != "x_origin"}
        for message in messages
    ]
