"""The exercise of the second seed: three functions, and a question that needs several of them.

    python -m examples.three_functions --practice            # against the practice model
    LLMBROKER_BASE_URL=… LLMBROKER_MODEL=… LLMBROKER_API_KEY=… python -m examples.three_functions

Four ways to declare the same functions show what a model goes by: good descriptions, bad ones,
free text where few words are right, and an enum in its place.
"""

# ruff: noqa: T201, INP001 - an example prints, and is no package

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from threading import Thread
from typing import Annotated, Literal

from simpleeval import simple_eval

import llmbroker
from llmbroker import Function, ModelRetry

QUESTION = (
    "Bugun qaysi kun va Toshkentda ob-havo qanday, farengeytda? "
    "Agar 30 darajadan issiq bo'lsa, 30 * 1.8 + 32 ni hisobla."
)

CELSIUS = {"Toshkent": 34, "Samarqand": 31, "Buxoro": 36}
City = Literal["Toshkent", "Samarqand", "Buxoro"]
Unit = Literal["selsiy", "farengeyt"]


def bugungi_sana() -> str:
    """Bugungi sanani YYYY-MM-DD ko'rinishida qaytaradi."""
    return date.today().isoformat()  # noqa: DTZ011 - the date where the user is


def ob_havo(shahar: Annotated[str, "Shahar nomi, masalan Toshkent"]) -> str:
    """Shahardagi hozirgi ob-havoni qaytaradi."""
    if shahar not in CELSIUS:
        raise ModelRetry(f"{shahar} topilmadi; bor shaharlar: {', '.join(CELSIUS)}.")
    return f"{shahar}: {CELSIUS[shahar]} °C"


def hisobla(ifoda: Annotated[str, "Arifmetik ifoda, masalan 2 * (3 + 4)"]) -> str:
    """Arifmetik ifodani hisoblaydi."""
    return f"{ifoda} = {simple_eval(ifoda):g}"


def ob_havo_matn(
    shahar: Annotated[str, "Shahar nomi, masalan Toshkent"],
    birlik: Annotated[str, "Harorat birligi"],
) -> str:
    """Shahardagi hozirgi ob-havoni so'ralgan birlikda qaytaradi."""
    return _temperature(shahar, birlik)


def ob_havo_enum(
    shahar: Annotated[City, "Shahar nomi"],
    birlik: Annotated[Unit, "Harorat birligi"],
) -> str:
    """Shahardagi hozirgi ob-havoni so'ralgan birlikda qaytaradi."""
    return _temperature(shahar, birlik)


def _temperature(city: str, unit: str) -> str:
    if city not in CELSIUS or unit not in ("selsiy", "farengeyt"):
        raise ModelRetry(f"shahar {city!r} yoki birlik {unit!r} noma'lum.")
    celsius = CELSIUS[city]
    return f"{city}: {celsius * 1.8 + 32:g} °F" if unit == "farengeyt" else f"{city}: {celsius} °C"


def _vague(function: Function[..., str], number: int) -> Function[..., str]:
    return function.replaced(name=f"funksiya_{number}", description="Foydali ish qiladi.")


GOOD = [Function.of(each, effect="pure") for each in (bugungi_sana, ob_havo, hisobla)]
VARIANTS: dict[str, list[Function[..., str]]] = {
    "good descriptions": GOOD,
    "bad descriptions": [_vague(each, number) for number, each in enumerate(GOOD, start=1)],
    "free text": [GOOD[0], Function.of(ob_havo_matn, name="ob_havo"), GOOD[2]],
    "enum": [GOOD[0], Function.of(ob_havo_enum, name="ob_havo"), GOOD[2]],
}


def ask(
    broker: llmbroker.Broker, tools: Sequence[Function[..., str]], question: str = QUESTION
) -> list[llmbroker.ToolResult]:
    """Put the question, print each choice and the answer; returns the choices in their order."""
    choices: list[llmbroker.ToolResult] = []

    def show(step: llmbroker.ToolStep) -> None:
        for result in step.results:
            choices.append(result)
            print(f"  {len(choices)}. {result.call.name}({_written(result)}) → {result.text}")

    reply = llmbroker.run_tool_loop(
        broker,
        [{"role": "user", "content": question}],
        tools=tools,
        final_answer=True,
        on_step=show,
    )
    print(f"  = {reply.text}\n")
    return choices


def _written(result: llmbroker.ToolResult) -> str:
    arguments = result.call.arguments or {}
    return ", ".join(f"{name}={value!r}" for name, value in arguments.items())


@contextmanager
def practice() -> Iterator[llmbroker.Broker]:
    """A broker over the practice model, which runs here and understands this question."""
    from broker_project.local.practice_model import MODEL  # noqa: PLC0415 - only if asked for
    from broker_project.local.practice_model.server import Server  # noqa: PLC0415

    with Server() as server:
        Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        model = llmbroker.LLMConfig(MODEL, server.base_url, MODEL, "PRACTICE")
        registry = llmbroker.InMemoryRegistry([model])
        with llmbroker.Broker(registry, secrets={"PRACTICE": "none-needed"}) as broker:
            yield broker
        server.shutdown()


def main() -> None:
    """Ask the question with each way of declaring the functions."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--practice", action="store_true", help="use the practice model")
    parser.add_argument("--question", default=QUESTION)
    parser.add_argument("--variant", choices=VARIANTS, action="append")
    args = parser.parse_args()
    with practice() if args.practice else llmbroker.Broker() as broker:
        print(f"{args.question}\n")
        for name in args.variant or VARIANTS:
            print(f"{name}:")
            ask(broker, VARIANTS[name], args.question)


if __name__ == "__main__":
    main()
