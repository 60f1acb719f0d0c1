"""A model server, and brokers over it whose time can be moved."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import llmbroker
from llmbroker.routing.health import MemoryHealth
from tests.support.model_server import ModelServer


class Clock:
    """Time that a test moves."""

    def __init__(self, now: float = 1_767_225_600.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def other_server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


MakeBroker = Callable[..., llmbroker.Broker]


@pytest.fixture
def make_broker(clock: Clock) -> Iterator[MakeBroker]:
    """Builds brokers over models given as (name, server, settings); closes them afterwards."""
    made: list[llmbroker.Broker] = []
    moved = {"health": MemoryHealth(clock, jitter=lambda: 0.0), "clock": clock}

    def make(*models: llmbroker.LLMConfig, **kwargs: object) -> llmbroker.Broker:
        options: dict[str, object] = {
            "secrets": {"KEY": "sk-everybody", "ann/KEY": "sk-ann"},
            "store": llmbroker.InMemoryStore(),
            **({} if "health" in kwargs else moved),
            **kwargs,
        }
        broker = llmbroker.Broker(llmbroker.InMemoryRegistry(models), **options)
        made.append(broker)
        return broker

    yield make
    for broker in made:
        broker.close()


def model(server: ModelServer, name: str = "alpha", **settings: object) -> llmbroker.LLMConfig:
    """A model of ``server`` under the key KEY."""
    options: dict[str, object] = {
        "base_url": server.base_url,
        "model": f"{name}-1",
        "api_key_ref": "KEY",
        **settings,
    }
    return llmbroker.LLMConfig(name=name, **options)  # type: ignore[arg-type]
