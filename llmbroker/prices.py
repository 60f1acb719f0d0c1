"""What calls cost, by the public price list that the package genai-prices carries."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, TypeAlias

from llmbroker.models import LLMConfig, Usage

if TYPE_CHECKING:
    from genai_prices import Usage as Tokens
    from genai_prices.types import ModelPrice


@dataclass(frozen=True, slots=True)
class Price:
    """What a call cost, in millionths of a US dollar, and the list that says so."""

    micros: int
    source: str


Pricing: TypeAlias = Callable[[LLMConfig, Usage, "str | None"], "Price | None"]
"""The price of a call by its configuration, its usage and the model that answered."""

FREE = Price(0, "no key needed")

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


def price_of(config: LLMConfig, usage: Usage, model: str | None = None) -> Price | None:
    """As ``cost_of``, as the journal holds it. Tokens that nobody counted have no price."""
    if not config.api_key_ref:
        return FREE
    if usage.prompt_tokens is None or usage.completion_tokens is None:
        return None
    today = datetime.now(UTC).date()
    for name in dict.fromkeys((model, config.model)):
        rates = _rates(config.base_url, name, today) if name else None
        if rates is not None:
            micros = rates.micros(usage).quantize(Decimal(1), ROUND_HALF_UP)
            return Price(int(micros), rates.source)
    return None


@dataclass(frozen=True, slots=True)
class _Rates:
    """One entry of the list. A dollar for a million tokens is a millionth of one for each."""

    price: ModelPrice
    source: str

    def micros(self, usage: Usage) -> Decimal:
        rates = (self.price.input_mtok, self.price.cache_read_mtok, self.price.output_mtok)
        prompt, completion = usage.prompt_tokens or 0, usage.completion_tokens or 0
        cached = min(usage.cached_tokens or 0, prompt)
        whole, read, written = (rate if isinstance(rate, Decimal) else None for rate in rates)
        if whole is None or written is None or (cached and read is None):
            # By steps of length, or a case of its own: the list's slow way, which knows them all.
            tokens = _tokens(usage)
            return 1_000_000 * self.price.calc_price(tokens)["total_price"]
        return (prompt - cached) * whole + cached * (read or 0) + completion * written


@functools.lru_cache(maxsize=4096)
def _rates(base_url: str, model: str, today: date) -> _Rates | None:
    """The prices of a model today; None where the list does not know it."""
    from importlib.metadata import version  # noqa: PLC0415

    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415

    moment = datetime(today.year, today.month, today.day, tzinfo=UTC)
    try:
        provider, found = get_snapshot().find_provider_model(model, None, None, base_url)
    except LookupError:
        return None
    source = f"genai-prices {version('genai-prices')} {provider.id}/{found.id}"
    return _Rates(found.get_prices(moment), source)


@functools.lru_cache(maxsize=4096)
def typical_cost(config: LLMConfig) -> Decimal | None:
    """US dollars for a call of 1,000 prompt and 300 completion tokens, to compare models by."""
    return cost_of(config, _TYPICAL)


def _listed(base_url: str, model: str, usage: Usage) -> Decimal | None:
    # Imported late: it brings pydantic along, 0.2 s that most programs need not spend.
    from genai_prices import calc_price  # noqa: PLC0415

    try:
        return calc_price(_tokens(usage), model_ref=model, provider_api_url=base_url).total_price
    except LookupError:
        return None


def _tokens(usage: Usage) -> Tokens:
    """Of what was cached no more than the prompt has: some providers count it beside the prompt."""
    from genai_prices import Usage as Tokens  # noqa: PLC0415

    prompt, cached = usage.prompt_tokens, usage.cached_tokens
    return Tokens(
        input_tokens=prompt,
        output_tokens=usage.completion_tokens,
        cache_read_tokens=None if cached is None else min(cached, prompt or 0),
    )
