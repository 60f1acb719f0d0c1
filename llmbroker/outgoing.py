"""A request about to leave, as a gate weighs it: at its worst before, as it was after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from llmbroker.models import LLMConfig, Message, ToolSchema, Usage

TOKENS_OF_A_PART = 4096
"""What a part that is no text (an image, a sound) counts beside its bytes."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One attempt at one model, before it is made."""

    call_id: str
    scope: str | None
    config: LLMConfig
    messages: Sequence[Message]
    tools: Sequence[ToolSchema] | None = None
    params: Mapping[str, object] | None = None
    key_id: str = ""

    @property
    def answer_cap(self) -> int | None:
        """The caller's own limit of one answer, if there is one."""
        params = self.params or {}
        cap = params.get("max_completion_tokens") or params.get("max_tokens")
        return cap if isinstance(cap, int) and cap > 0 else None

    @property
    def choices(self) -> int:
        """How many answers are asked for at once."""
        asked = (self.params or {}).get("n")
        return asked if isinstance(asked, int) and asked > 0 else 1

    def prompt_tokens(self) -> int:
        """No fewer than any tokenizer makes of it: a token is at least one byte."""
        text = orjson.dumps([self.messages, self.tools, self.params], default=str)
        return len(text) + TOKENS_OF_A_PART * sum(map(_parts, self.messages))


@dataclass(frozen=True, slots=True)
class Admission:
    """A gate's leave to send a request; ``answer_cap`` is sent along where the caller has none."""

    ticket: object
    answer_cap: int | None = None


@dataclass(frozen=True, slots=True)
class Spent:
    """What became of a request. ``billed`` without ``usage``: perhaps, and nobody knows how much.

    ``model`` is the one that answered, where the provider says so.
    """

    billed: bool
    usage: Usage | None = None
    model: str | None = None


def _parts(message: Message) -> int:
    content = message.get("content")
    if not isinstance(content, list):
        return 0
    return sum(1 for part in content if isinstance(part, dict) and part.get("type") != "text")
