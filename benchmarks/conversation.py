"""The conversation that every contender has: two tool rounds, then the answer.

Standard library only: it is imported in the peer's environment too.
"""

from __future__ import annotations

MODEL = "bench"
KEY_REF = "BENCH_API_KEY"
KEY = "bench-key-of-no-provider"
CALLS = 3
ANSWER = "In Tashkent it is 21.5 °C today, 30 November 2026."

MESSAGES = [
    {"role": "system", "content": "You are a helpful assistant. Use the tools you are given."},
    {"role": "user", "content": "What is the date today, and the weather in Tashkent?"},
]


def _tool(name: str, description: str, parameter: str) -> dict:
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {
                "type": "object",
                "properties": {parameter: {"type": "string"}},
                "required": [parameter],
            },
        },
    }


TOOLS = [
    _tool("today", "The current date in a time zone", "timezone"),
    _tool("weather", "The current weather in a city", "city"),
]

# What the model asks for, turn by turn: (tool, its arguments as the wire carries them).
TURNS = [("today", '{"timezone": "Asia/Tashkent"}'), ("weather", '{"city": "Tashkent"}')]


def today(timezone: str) -> str:
    """A tool that takes no time, so that only the loop is measured."""
    return f"2026-11-30 ({timezone})"


def weather(city: str) -> str:
    """See ``today``."""
    return f"{city}: 21.5 °C, clear"


async def today_async(timezone: str) -> str:
    """``today`` as a coroutine function."""
    return today(timezone)


async def weather_async(city: str) -> str:
    """``weather`` as a coroutine function."""
    return weather(city)


PLAIN_TOOLS = {"today": today, "weather": weather}
COROUTINE_TOOLS = {"today": today_async, "weather": weather_async}
