"""What a call cost, as the journal holds it."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from llmbroker.models import LLMConfig, Usage
from llmbroker.prices import FREE, cost_of, price_of


def config(base_url="https://api.openai.com/v1", model="gpt-4o-mini", ref="OPENAI_API_KEY"):
    return LLMConfig("m", base_url, model, ref)


def test_a_dollar_for_a_million_tokens_is_a_millionth_for_each():
    price = price_of(config(), Usage(1_000_000, 1_000_000))
    assert price.micros == 150_000 + 600_000


def test_the_price_names_the_list_and_the_entry_it_came_from():
    assert price_of(config(), Usage(1, 1)).source.startswith("genai-prices ")
    assert price_of(config(), Usage(1, 1)).source.endswith(" openai/gpt-4o-mini")


def test_the_model_that_answered_counts_before_the_one_asked_for():
    assert price_of(config(), Usage(1, 1), "gpt-4o-2024-08-06").source.endswith("/gpt-4o")


def test_a_model_that_needs_no_key_costs_nothing():
    assert price_of(config(ref=""), Usage(1, 1)) == FREE


@pytest.mark.parametrize("usage", [Usage(), Usage(1), Usage(None, 1)])
def test_tokens_that_nobody_counted_have_no_price(usage):
    assert price_of(config(), usage) is None


def test_a_model_that_the_list_does_not_know_has_no_price():
    assert price_of(config("http://127.0.0.1:9/v1", "practice"), Usage(1, 1)) is None


@pytest.mark.parametrize(
    "usage", [Usage(1000, 300), Usage(1000, 300, 1300, 900), Usage(300_000, 50)], ids=str
)
def test_the_short_way_agrees_with_the_lists_own_for_every_model(usage):
    from genai_prices.data_snapshot import get_snapshot

    urls = {
        "openai": "https://api.openai.com",
        "google": "https://generativelanguage.googleapis.com",
    }
    urls |= {"anthropic": "https://api.anthropic.com", "mistral": "https://api.mistral.ai"}
    checked = 0
    for provider in get_snapshot().providers:
        for model in provider.models if provider.id in urls else ():
            one = config(urls[provider.id], model.id)
            try:
                listed = cost_of(one, usage)
            except ValueError:  # the list refuses cached tokens where it has no price of prompts
                continue
            price = price_of(one, usage)
            if listed is not None and model.get_prices(datetime.now(UTC)) is not None:
                assert abs(Decimal(price.micros) - listed * 1_000_000) <= 1, model.id
                checked += 1
    assert checked > 50
