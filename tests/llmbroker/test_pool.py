"""A scope's lineup is kept, and yet never outlives what the ports give."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from llmbroker import DictSecrets, LLMConfig
from llmbroker.errors import KeyUnavailableError, NoLLMAvailableError
from llmbroker.models import ApiKey
from llmbroker.routing.pool import KEPT_FOR, Pool


class Models:
    """A registry that hands out its own list."""

    def __init__(self, *names: str) -> None:
        self.configs = [config(name) for name in names]

    async def load(self) -> list[LLMConfig]:
        return self.configs


class Keys:
    """A key chain that hands out its own list."""

    def __init__(self, *values: str) -> None:
        self.stored = [ApiKey(value, value) for value in values]
        self.broken = False

    async def resolve(self, ref: str) -> str:
        raise KeyError(ref)

    async def keys(self, ref: str, *, scope: str | None) -> Sequence[ApiKey]:
        if self.broken:
            raise KeyUnavailableError(ref)
        return self.stored


def config(name: str) -> LLMConfig:
    return LLMConfig(name=name, base_url="http://127.0.0.1/v1", model=name, api_key_ref="KEY")


def usable(pool: Pool, scope: str | None = None) -> list[tuple[str, str]]:
    found = asyncio.run(pool.usable(scope))
    return [(each.name, each.key.value) for each in found]


def test_a_lineup_is_kept_while_nothing_changes() -> None:
    pool = Pool(Models("small"), Keys("first"))
    assert asyncio.run(pool.lineup("a")) is asyncio.run(pool.lineup("a"))


def test_a_key_taken_out_of_the_hosts_own_list_is_not_used_again() -> None:
    keys = Keys("first", "second")
    pool = Pool(Models("small"), keys)
    assert usable(pool) == [("small", "first"), ("small", "second")]
    del keys.stored[0]
    assert usable(pool) == [("small", "second")]
    keys.stored.clear()
    with pytest.raises(NoLLMAvailableError):
        usable(pool)


def test_a_replaced_value_is_used_at_once() -> None:
    keys = Keys("old")
    pool = Pool(Models("small"), keys)
    assert usable(pool) == [("small", "old")]
    keys.stored[0] = ApiKey("old", "new")  # the same key's id, another value
    assert usable(pool) == [("small", "new")]


def test_a_model_added_to_the_hosts_own_list_is_seen() -> None:
    models = Models("small")
    pool = Pool(models, Keys("first"))
    assert len(usable(pool)) == 1
    models.configs.append(config("large"))
    assert [name for name, _ in usable(pool)] == ["small", "large"]


def test_keys_that_cannot_be_read_are_neither_used_nor_remembered() -> None:
    keys = Keys("first")
    pool = Pool(Models("small"), keys)
    assert usable(pool) == [("small", "first")]
    keys.broken = True
    with pytest.raises(KeyUnavailableError):
        usable(pool)
    keys.broken = False
    assert usable(pool) == [("small", "first")]


def test_scopes_do_not_share_a_lineup() -> None:
    pool = Pool(Models("small"), DictSecrets({"KEY": "common", "a/KEY": "own"}))
    assert usable(pool, "a") == [("small", "own")]
    assert usable(pool, "b") == [("small", "common")]
    assert usable(pool, "a") == [("small", "own")]


def test_keys_are_kept_for_a_minute_and_no_longer_whoever_calls() -> None:
    now = [1000.0]
    pool = Pool(Models("small"), Keys("first"), clock=lambda: now[0])
    usable(pool, "a")
    now[0] += KEPT_FOR - 1
    usable(pool, "b")
    assert set(pool._kept) == {"a", "b"}
    now[0] += 1
    usable(pool, "c")
    assert set(pool._kept) == {"b", "c"}


def test_keys_are_forgotten_where_nobody_calls_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llmbroker.routing.pool.KEPT_FOR", 0.01)
    pool = Pool(Models("small"), Keys("first"))

    async def program() -> None:
        await pool.usable("a")
        assert pool._kept
        await asyncio.sleep(0.05)

    asyncio.run(program())
    assert not pool._kept


@pytest.mark.parametrize(
    "address", ["", "api.test/v1", "ftp://api.test", "http://[::1/v1", "https://api.test:port/v1"]
)
def test_a_model_at_no_address_is_refused_where_it_is_declared(address: str) -> None:
    with pytest.raises(ValueError, match="bad: base_url"):
        LLMConfig(name="bad", base_url=address, model="m", api_key_ref="KEY")
