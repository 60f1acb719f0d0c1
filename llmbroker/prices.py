"""What calls cost, by the public price list that the package genai-prices carries."""

from __future__ import annotations

import functools
from decimal import Decimal

from llmbroker.models import LLMConfig, Usage

_TYPICAL = Usage(prompt_tokens=1000, completion_tokens=300)


def cost_of(config: LLMConfig, usage: Usage, *, model: str | None = None) -> Decimal | None:
    """US dollars for ``usage``; None where the price list does not know the model.

    ``model`` is the one that answered, where it differs from the one asked for. A model that
    needs no key costs nothing.
    """
    if not config.api_key_ref:
        return Decimal(0)
    for name in dict.fromkeys((model, config.model)):
        cost = _listed(config.base_url, name, usage) if name else None
        if cost is not None:
            return cost
    return None


@functools.lru_cache(maxsize=4096)
def typical_cost(config: LLMConfig) -> Decimal | None:
    """US dollars for a call of 1,000 prompt and 300 completion tokens, to compare models by."""
    return cost_of(config, _TYPICAL)


def _listed(base_url: str, model: str, usage: Usage) -> Decimal | None:
    # Imported late: it brings pydantic along, 0.2 s that most programs need not spend.
    from genai_prices import Usage as Tokens  # noqa: PLC0415
    from genai_prices import calc_price  # noqa: PLC0415

    tokens = Tokens(
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        cache_read_tokens=usage.cached_tokens,
    )
    try:
        return calc_price(tokens, model_ref=model, provider_api_url=base_url).total_price
    except LookupError:
        return None
