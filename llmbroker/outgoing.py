"""A request about to leave, as a gate weighs it: at its worst before, as it was after."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from llmbroker.models import LLMConfig, Message, ToolSchema, Usage
from llmbroker.text import storable_json
from llmbroker.wire.params import CHOICES, OTHER_NAME, asked

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
    def asked(self) -> dict[str, object]:
        """The parameters that are sent, the model's own among them."""
        return asked(self.params, self.config.tool_params if self.tools else {})

    @property
    def answer_cap(self) -> int | None:
        """The limit of one answer, if there is one that every provider reads as one.

        Of two the larger: which of them is sent depends on the provider.
        """
        asked = self.asked
        caps = [asked[name] for name in OTHER_NAME if name in asked]
        found = [cap for cap in caps if type(cap) is int and cap > 0]
        return max(found) if found and len(found) == len(caps) else None

    @property
    def choices(self) -> int:
        """How many answers are asked for at once."""
        asked = self.asked
        return max(1, *(_whole(asked.get(name)) for name in CHOICES))

    def prompt_tokens(self) -> int:
        """No fewer than any tokenizer makes of it: a token is at least one byte."""
        said = [self.messages, self.tools, self.asked]
        try:
            text = orjson.dumps(said, default=str)
        except TypeError:  # half a surrogate pair, or a number over 64 bits: sent all the same
            text = orjson.dumps(storable_json(said), default=str)
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


def _whole(value: object) -> int:
    """What a lenient provider may take for a number of answers."""
    try:
        return math.ceil(float(value))  # type: ignore[arg-type]  # whatever the caller gave
    except (TypeError, ValueError, OverflowError):
        return 1
