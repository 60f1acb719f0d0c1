"""Request parameters that some endpoint refuses, and what to send instead.

What a refusal taught is kept per (endpoint, model) in ``routing.corrections`` and handed to
``build_request`` as ``dropped`` and ``renamed``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

OTHER_NAME = {
    "max_tokens": "max_completion_tokens",
    "max_completion_tokens": "max_tokens",
}
"""The two names of the token limit: one is sent, never both, and the limit is never lost."""

CHOICES = ("n", "best_of")
"""How many answers are made at once, all of which are billed."""

OPTIONAL = frozenset(
    {
        "frequency_penalty",
        "logit_bias",
        "logprobs",
        "metadata",
        "min_p",
        "n",
        "parallel_tool_calls",
        "presence_penalty",
        "prompt_cache_key",
        "reasoning_effort",
        "repetition_penalty",
        "safety_identifier",
        "seed",
        "service_tier",
        "store",
        "stream_options",
        "temperature",
        "top_k",
        "top_logprobs",
        "top_p",
        "user",
        "verbosity",
    }
)
"""Parameters a request can go without: none of them changes what is asked for."""

# These are ordinary words: "Unexpected role 'user'" refuses no parameter.
_WORDS = frozenset({"n", "store", "user", "metadata"})

_KNOWN = OPTIONAL | OTHER_NAME.keys()
_CAMEL = re.compile(r"(?<=[a-z])([A-Z])")
_NAME_IN_TEXT = re.compile(
    r"(?<![\w.])("
    + "|".join(sorted(_KNOWN - _WORDS, key=len, reverse=True))
    + r"|frequencyPenalty|presencePenalty|topP|topK|logitBias|parallelToolCalls|maxTokens"
    r")(?!\w)"
)
_WORD_IN_TEXT = re.compile(
    r"(?:parameter|property|argument|name|field)s?(?: supplied)?\W{1,3}(n|store|user|metadata)\b",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"unsupported|(?:not|n't)\W+support|unknown|unrecognized|unexpected|extra_forbidden"
    r"|extra inputs|not (?:permitted|allowed)|cannot (?:be used|find)|deprecated"
    r"|incompatible|invalid (?:argument|parameter) name",
    re.IGNORECASE,
)


def asked(
    params: Mapping[str, object] | None, tool_params: Mapping[str, object]
) -> dict[str, object]:
    """What a request asks for: the caller's ``params`` and, beside them, the model's own."""
    given = {name: value for name, value in (params or {}).items() if value is not None}
    return given | {
        name: value
        for name, value in tool_params.items()
        if name not in given and OTHER_NAME.get(name) not in given
    }


def capped(params: Mapping[str, object] | None, cap: int) -> dict[str, object]:
    """The same ``params`` with this limit of the answer and no other."""
    others = {name: value for name, value in (params or {}).items() if name not in OTHER_NAME}
    return {**others, "max_tokens": cap}


def answer_cap(params: Mapping[str, object]) -> int | None:
    """The limit of the answer among ``params``, by which a cut answer is told from a broken one."""
    caps = (params.get(name) for name in OTHER_NAME)
    return next((cap for cap in caps if isinstance(cap, int)), None)


def known_param(name: object) -> str | None:
    """``name`` in its usual spelling if it is a parameter that can be left out or renamed."""
    if not isinstance(name, str) or "[" in name:
        return None
    name = _CAMEL.sub(r"_\1", name.rpartition(".")[2]).lower()
    return name if name in _KNOWN else None


def refused_param(message: str) -> str | None:
    """The parameter that the text of an error refuses, if it is one we can do without.

    >>> refused_param("Argument not supported on this model: presencePenalty")
    'presence_penalty'
    >>> refused_param("max_tokens must be at most 4096")
    """
    if not _REFUSAL.search(message):
        return None
    found = _NAME_IN_TEXT.search(message) or _WORD_IN_TEXT.search(message)
    return known_param(found[1]) if found else None
