"""The second seed's exercise: which functions does a model choose, and in what order?

Asked of the practice model over HTTP: it goes by names, descriptions and enums, as models do.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

import llmbroker
from examples import three_functions as exercise
from llmbroker import ToolStatus


@pytest.fixture(scope="module")
def broker() -> Iterator[llmbroker.Broker]:
    with exercise.practice() as broker:
        yield broker


def chosen(broker: llmbroker.Broker, variant: str) -> list[tuple[str, dict[str, object] | None]]:
    results = exercise.ask(broker, exercise.VARIANTS[variant])
    return [(each.call.name, each.call.arguments) for each in results]


def test_several_functions_are_chosen_one_after_another(broker: llmbroker.Broker) -> None:
    assert chosen(broker, "good descriptions") == [
        ("bugungi_sana", {}),
        ("ob_havo", {"shahar": "Toshkent"}),
        ("hisobla", {"ifoda": "30 * 1.8 + 32"}),
    ]


def test_without_descriptions_that_say_something_none_is_chosen(broker: llmbroker.Broker) -> None:
    assert chosen(broker, "bad descriptions") == []


def test_an_enum_makes_the_model_say_what_the_function_understands(
    broker: llmbroker.Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    free = exercise.ask(broker, exercise.VARIANTS["free text"])
    limited = exercise.ask(broker, exercise.VARIANTS["enum"])

    assert [each.status for each in free] == [
        ToolStatus.SUCCESS,
        ToolStatus.RETRY,
        ToolStatus.SUCCESS,
    ]
    assert {each.status for each in limited} == {ToolStatus.SUCCESS}
    assert limited[1].call.arguments == {"shahar": "Toshkent", "birlik": "farengeyt"}
    assert "93.2 °F" in capsys.readouterr().out


def test_every_call_of_the_model_is_in_the_journal(broker: llmbroker.Broker) -> None:
    before = len(broker.calls())
    exercise.ask(broker, exercise.VARIANTS["good descriptions"])
    assert len(broker.calls()) - before == 4


def test_the_example_prints_each_choice() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "examples.three_functions", "--practice"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    for variant in exercise.VARIANTS:
        assert f"{variant}:\n" in done.stdout
    assert "1. bugungi_sana() → " in done.stdout
    assert "2. ob_havo(shahar='Toshkent') → Toshkent: 34 °C" in done.stdout
    assert "3. hisobla(ifoda='30 * 1.8 + 32') → 30 * 1.8 + 32 = 86" in done.stdout
