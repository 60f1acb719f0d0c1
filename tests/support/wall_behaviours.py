"""How the failure wall's models behave. A model is called after one of these functions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tests.support.wall_exchange import ANSWER, TWO_THIRDS, WORDS, Exchange

Behaviour = Callable[[Exchange], Awaitable[None]]
BEHAVIOURS: dict[str, Behaviour] = {"sound": Exchange.answer}


def behaviour(behave: Behaviour) -> Behaviour:
    """Let models be called after ``behave``."""
    BEHAVIOURS[behave.__name__.replace("_", "-")] = behave
    return behave


@behaviour
async def limited_once(exchange: Exchange) -> None:
    if exchange.is_first:
        await exchange.fail(429, "Rate limit reached", "rate_limit_exceeded", Retry_After="2")
    else:
        await exchange.answer()


@behaviour
async def limited(exchange: Exchange) -> None:
    await exchange.fail(429, "Rate limit reached", "rate_limit_exceeded")


@behaviour
async def fails_once(exchange: Exchange) -> None:
    if exchange.is_first:
        await exchange.fail(500, "The server had an error")
    else:
        await exchange.answer()


@behaviour
async def unavailable(exchange: Exchange) -> None:
    await exchange.fail(503, "The engine is overloaded", "overloaded")


@behaviour
async def down(exchange: Exchange) -> None:
    await (unavailable(exchange) if exchange.wall.down else exchange.answer())


@behaviour
async def limits_all(exchange: Exchange) -> None:
    """A rate limit that says to everybody when it passes: at the same moment."""
    if exchange.wall.down:
        await exchange.fail(429, "Rate limit reached", "rate_limit_exceeded", Retry_After="1")
    else:
        await exchange.answer()


@behaviour
async def mute(exchange: Exchange) -> None:
    """As ``down``, but nobody answers at all."""
    await (exchange.hold() if exchange.wall.down else exchange.answer())


@behaviour
async def resets(exchange: Exchange) -> None:
    exchange.reset()


@behaviour
async def silent(exchange: Exchange) -> None:
    await exchange.hold()


@behaviour
async def slow(exchange: Exchange) -> None:
    """The headers come at once, the first word after a while."""
    if exchange.is_streamed:
        await exchange.begin()
    await asyncio.sleep(exchange.wall.pause)
    if exchange.is_streamed:
        await exchange.tell()
    else:
        await exchange.answer()


async def two_thirds(exchange: Exchange) -> None:
    if exchange.is_streamed:
        await exchange.begin()
        await exchange.say(*WORDS[:TWO_THIRDS])
    else:
        body = exchange.completion()
        await exchange.send(200, body, cut=len(body) * 2 // 3)


@behaviour
async def cut(exchange: Exchange) -> None:
    """Two thirds of the answer, and the connection ends."""
    await two_thirds(exchange)
    exchange.hang_up()


@behaviour
async def stalls(exchange: Exchange) -> None:
    """Two thirds of the answer, and nothing more on an open line."""
    await two_thirds(exchange)
    await exchange.hold()


async def keep_alive(exchange: Exchange, seconds: float) -> None:
    """Comments, which say no more than that somebody is there."""
    for _ in range(round(seconds / 0.1)):
        await exchange.event(b": PROCESSING\n\n")
        await asyncio.sleep(0.1)


@behaviour
async def only_keeps_alive(exchange: Exchange) -> None:
    """Comments for ever, and no first word."""
    await exchange.begin()
    await keep_alive(exchange, 60)


@behaviour
async def thinks_half_way(exchange: Exchange) -> None:
    """Two thirds of the answer, comments for a while, and the rest."""
    await exchange.begin()
    await exchange.say(*WORDS[:TWO_THIRDS])
    await keep_alive(exchange, exchange.wall.pause)
    for word in WORDS[TWO_THIRDS:]:
        await exchange.chunk({"content": f" {word}"})
    await exchange.finish()
    await exchange.end()


@behaviour
async def garbled(exchange: Exchange) -> None:
    """Something that is no JSON gets into an answer that is otherwise whole."""
    if exchange.is_streamed:
        await exchange.begin()
        await exchange.tell(
            *WORDS[:9],
            b'data: {"id": "wall", "choices": [{"delta": {"content": \n\n',
            *WORDS[9:],
        )
    else:
        await exchange.send(200, exchange.completion()[:-9] + b'"oops')


@behaviour
async def garbled_first(exchange: Exchange) -> None:
    """The same before the first word: nobody has seen anything yet."""
    if exchange.is_streamed:
        await exchange.begin()
        await exchange.tell(b"data: <html>\n\n", *WORDS)
    else:
        await exchange.send(200, b"<html>it works</html>")


@behaviour
async def loses_a_word(exchange: Exchange) -> None:
    """As ``garbled``, but what is broken was a part of the answer."""
    broken = f'data: {{"choices": [{{"delta": {{"content": " {WORDS[9]}\n\n'
    await exchange.begin()
    await exchange.tell(*WORDS[:9], broken.encode(), *WORDS[10:])


@behaviour
async def no_done(exchange: Exchange) -> None:
    """A whole stream, properly ended, that never says [DONE]."""
    if exchange.is_streamed:
        await exchange.begin()
        await exchange.tell(*WORDS, done=False)
    else:
        await exchange.answer()


@behaviour
async def no_end(exchange: Exchange) -> None:
    """As ``no_done``, and the connection stays open."""
    if exchange.is_streamed:
        await exchange.begin()
        await exchange.say(*WORDS)
        await exchange.finish()
        await exchange.hold()
    else:
        await exchange.answer()


@behaviour
async def refuses_key(exchange: Exchange) -> None:
    await exchange.fail(401, "Incorrect API key provided", "invalid_api_key")


@behaviour
async def cut_short(exchange: Exchange) -> None:
    """The token limit was used up by thinking, before the first word."""
    nothing = {"role": "assistant", "content": "", "reasoning_content": "Let me think"}
    await exchange.send(200, exchange.completion(nothing, "length"))


@behaviour
async def small_window(exchange: Exchange) -> None:
    await exchange.fail(400, "The maximum context length is 8 tokens", "context_length_exceeded")


@behaviour
async def filtered(exchange: Exchange) -> None:
    await exchange.fail(400, "Rejected by our safety system", "content_policy_violation")


@behaviour
async def filters_its_answer(exchange: Exchange) -> None:
    """A 200 in which there is nothing but the word that it was filtered."""
    if exchange.is_streamed:
        await exchange.begin()
        await exchange.finish("content_filter")
        await exchange.end()
    else:
        nothing = {"role": "assistant", "content": None}
        await exchange.send(200, exchange.completion(nothing, "content_filter"))


@behaviour
async def declines(exchange: Exchange) -> None:
    """A 200 in which the model itself says no."""
    refusal = {"role": "assistant", "content": None, "refusal": ANSWER}
    await exchange.send(200, exchange.completion(refusal))


@behaviour
async def no_prefill(exchange: Exchange) -> None:
    """Refuses to go on with what an assistant began."""
    if exchange.visit.last_role == "assistant":
        await exchange.fail(400, "This model does not support assistant message prefill")
    else:
        await exchange.answer()
