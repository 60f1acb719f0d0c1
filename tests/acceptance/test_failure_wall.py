"""The failure wall: sixteen faults of providers, and what a caller gets of each.

A caller sees the whole answer, or a typed error where there can be none; of a stream that
breaks off inside the answer, a typed error within the time that was set. The journal tells
each attempt once, with what it used and what it cooled.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

import llmbroker
from llmbroker.models import Call, CallStatus
from tests.support.wall import ANSWER, TWO_THIRDS, USAGE, WORDS, Wall

QUESTION = [{"role": "user", "content": "What do you know of failures?"}]
PREFILLED = [*QUESTION, {"role": "assistant", "content": "I know that"}]
PATIENCE = 5.0
"""Seconds within which every call ends, whatever happens to it."""

TIMEOUTS = llmbroker.Timeouts(connect=1.0, first_token=0.3, stall=0.3, answer=0.3)
SPENT = llmbroker.Usage(**USAGE)
INTERRUPTED = llmbroker.StreamInterruptedError
WINDOWS = {"small-window": 8_000, "sound": 100_000}

Row = tuple[str, str, str | None]
OK = ("sound", "ok", None)


@dataclass(frozen=True)
class Fault:
    """A pool, best model first, and what becomes of a call.

    ``chat`` and ``stream`` hold the attempts, oldest first, as (model, status, error_class).
    ``chat_raises`` and ``stream_raises`` name the error where there is no whole answer.
    """

    name: str
    pool: tuple[str, ...]
    chat: list[Row]
    stream: list[Row]
    chat_raises: type[Exception] | None = None
    stream_raises: type[Exception] | None = None
    messages: list[dict[str, object]] = field(default_factory=lambda: QUESTION)


def both(
    name: str,
    pool: tuple[str, ...],
    rows: list[Row],
    raises: type[Exception] | None = None,
    messages: list[dict[str, object]] = QUESTION,
) -> Fault:
    """A fault of which ``chat`` and a stream make the same."""
    return Fault(name, pool, rows, rows, raises, raises, messages)


def passed_over(model: str, status: str, error_class: str) -> list[Row]:
    """One failed attempt, and the next model's answer."""
    return [(model, status, error_class), OK]


def then_sound(model: str) -> tuple[str, str]:
    return model, "sound"


FAULTS = [
    both(
        "429 with Retry-After",
        then_sound("limited-once"),
        passed_over("limited-once", "rate_limited", "rate_limited"),
    ),
    both(
        "429 without Retry-After",
        then_sound("limited"),
        passed_over("limited", "rate_limited", "rate_limited"),
    ),
    both(
        "500 once",
        then_sound("fails-once"),
        passed_over("fails-once", "error", "server_error"),
    ),
    both(
        "503 for ever",
        then_sound("unavailable"),
        passed_over("unavailable", "unavailable", "overloaded"),
    ),
    both(
        "reset before the headers",
        then_sound("resets"),
        passed_over("resets", "error", "disconnected"),
    ),
    both("silence", then_sound("silent"), passed_over("silent", "error", "timeout")),
    both("slow first token", then_sound("slow"), passed_over("slow", "error", "timeout")),
    Fault(
        "cut after two thirds",
        then_sound("cut"),
        chat=passed_over("cut", "error", "disconnected"),
        stream=[("cut", "error", "stream_cut")],
        stream_raises=INTERRUPTED,
    ),
    Fault(
        "a stall inside the answer",
        then_sound("stalls"),
        chat=passed_over("stalls", "error", "timeout"),
        stream=[("stalls", "error", "stream_cut")],
        stream_raises=INTERRUPTED,
    ),
    Fault(
        "a malformed chunk",
        then_sound("garbled"),
        chat=passed_over("garbled", "error", "invalid_response"),
        stream=[("garbled", "ok", None)],
    ),
    both("no [DONE]", then_sound("no-done"), [("no-done", "ok", None)]),
    both(
        "context length",
        then_sound("small-window"),
        passed_over("small-window", "error", "context_length"),
    ),
    both(
        "content filter",
        then_sound("filtered"),
        [("filtered", "error", "content_policy")],
        raises=llmbroker.ContentPolicyError,
    ),
    both(
        "a fallback that refuses prefill",
        ("unavailable", "no-prefill"),
        [("unavailable", "unavailable", "overloaded"), ("no-prefill", "ok", None)],
        messages=PREFILLED,
    ),
    both(
        "a primary that is down",
        then_sound("down"),
        passed_over("down", "unavailable", "overloaded"),
    ),
    both(
        "accounting after failover",
        ("resets", "unavailable", "sound"),
        [
            ("resets", "error", "disconnected"),
            *passed_over("unavailable", "unavailable", "overloaded"),
        ],
    ),
]

# The same faults in other clothes, which the sixteen names do not tell apart.
VARIANTS = [
    both(
        "a malformed chunk before the first word",
        then_sound("garbled-first"),
        passed_over("garbled-first", "error", "invalid_response"),
    ),
    both("no [DONE] on a line that stays open", then_sound("no-end"), [("no-end", "ok", None)]),
    both(
        "a filter that speaks up in a 200",
        then_sound("filters-its-answer"),
        [("filters-its-answer", "error", "content_policy")],
        raises=llmbroker.ContentPolicyError,
    ),
    both("a model that declines", then_sound("declines"), [("declines", "ok", None)]),
    both(
        "no model with a larger window",
        ("small-window",),
        [("small-window", "error", "context_length")],
        raises=llmbroker.ContextLengthError,
    ),
]

COOLS_NOTHING = {"context_length", "content_policy"}


@dataclass(frozen=True)
class Outcome:
    """What the caller got, how long it took, and what is left behind."""

    text: str
    error: Exception | None
    seconds: float
    told: llmbroker.Reply | llmbroker.AsyncReply | llmbroker.Stream | llmbroker.AsyncStream | None
    journal: list[Call]
    broker: llmbroker.AsyncBroker

    @property
    def rows(self) -> list[Row]:
        return [
            (row.llm_name, row.status.value if row.status else "", row.error_class)
            for row in self.journal
        ]

    @property
    def slots_taken(self) -> int:
        return sum(self.broker._parts.engine.slots._taken.values())


@pytest.fixture
def wall() -> Iterator[Wall]:
    with Wall(pause=0.8) as wall:
        wall.down = True
        yield wall


def broker_options(wall: Wall, pool: tuple[str, ...], **options: object) -> dict[str, object]:
    models = [
        llmbroker.LLMConfig(
            name,
            wall.base_url,
            name,
            "KEY",
            weight=1 - position / 10,
            parallel=2,
            context_window=WINDOWS.get(name),
        )
        for position, name in enumerate(pool)
    ]
    return {
        "registry": llmbroker.InMemoryRegistry(models),
        "secrets": {"KEY": "sk-wall"},
        "store": llmbroker.InMemoryStore(),
        "timeouts": TIMEOUTS,
        **options,
    }


def blocking(wall: Wall, fault: Fault, *, streamed: bool, **options: object) -> Outcome:
    """Call through Broker."""
    broker = llmbroker.Broker(**broker_options(wall, fault.pool, **options))
    started, pieces, error, told = time.monotonic(), [], None, None
    try:
        if streamed:
            told = broker.stream(messages=fault.messages)
            _collect(told, pieces)
        else:
            told = broker.chat(fault.messages)
            pieces.append(told.text)
    except llmbroker.LLMRequestError as caught:
        error = caught
    seconds = time.monotonic() - started
    broker.close()
    journal = list(reversed(broker.calls()))
    broker.close()
    return Outcome("".join(pieces), error, seconds, told, journal, broker._broker)


def on_a_loop(wall: Wall, fault: Fault, *, streamed: bool, **options: object) -> Outcome:
    """Call through AsyncBroker."""

    async def program() -> Outcome:
        broker = llmbroker.AsyncBroker(**broker_options(wall, fault.pool, **options))
        started, pieces, error, told = time.monotonic(), [], None, None
        try:
            if streamed:
                told = broker.stream(messages=fault.messages)
                await _acollect(told, pieces)
            else:
                told = await broker.chat(fault.messages)
                pieces.append(told.text)
        except llmbroker.LLMRequestError as caught:
            error = caught
        seconds = time.monotonic() - started
        await broker.aclose()
        journal = list(reversed(await broker.calls()))
        return Outcome("".join(pieces), error, seconds, told, journal, broker)

    return asyncio.run(program())


def _collect(stream: llmbroker.Stream, pieces: list[str]) -> None:
    for piece in stream:
        pieces += [piece]


async def _acollect(stream: llmbroker.AsyncStream, pieces: list[str]) -> None:
    async for piece in stream:
        pieces += [piece]


FACES = [blocking, on_a_loop]


def assert_sound_books(outcome: Outcome, wall: Wall) -> None:
    """What holds of every journal, whatever happened."""
    journal = outcome.journal
    assert len({row.id for row in journal}) == len(journal)
    assert [row.llm_name for row in journal] == [visit.model for visit in wall.visits]
    for row in journal:
        assert row.status is not CallStatus.STARTED
        assert (row.usage is not None) == (row.status is CallStatus.OK)
        cools = row.error_class is not None and row.error_class not in COOLS_NOTHING
        assert (row.cooldown_until is not None) == cools
        assert row.latency_ms is not None
    assert outcome.slots_taken == 0


def assert_answered_by(outcome: Outcome, model: str) -> None:
    assert outcome.error is None
    assert outcome.text == ANSWER
    assert outcome.told is not None
    assert outcome.told.llm_name == model
    assert outcome.told.usage == SPENT


def assert_as_expected(
    outcome: Outcome, rows: list[Row], raises: type[Exception] | None, wall: Wall
) -> None:
    assert outcome.rows == rows
    if raises is None:
        assert_answered_by(outcome, rows[-1][0])
    else:
        assert type(outcome.error) is raises
    assert outcome.seconds < PATIENCE
    assert_sound_books(outcome, wall)


by_name = pytest.mark.parametrize("fault", [*FAULTS, *VARIANTS], ids=lambda fault: fault.name)
by_face = pytest.mark.parametrize("call", FACES, ids=["blocking", "on a loop"])


@by_face
@by_name
def test_chat_gives_the_whole_answer_or_the_right_error(
    wall: Wall, fault: Fault, call: object
) -> None:
    outcome = call(wall, fault, streamed=False)

    assert_as_expected(outcome, fault.chat, fault.chat_raises, wall)


@by_face
@by_name
def test_a_stream_gives_the_whole_answer_or_says_that_it_broke_off(
    wall: Wall, fault: Fault, call: object
) -> None:
    outcome = call(wall, fault, streamed=True)

    assert_as_expected(outcome, fault.stream, fault.stream_raises, wall)


def test_sixteen_faults_are_tried_and_a_stream_breaks_off_in_two() -> None:
    broken = [fault.name for fault in FAULTS if fault.stream_raises is INTERRUPTED]

    assert len({fault.name for fault in FAULTS}) == 16
    assert broken == ["cut after two thirds", "a stall inside the answer"]


@by_face
@pytest.mark.parametrize("model", ["cut", "stalls"])
def test_what_was_streamed_before_the_break_is_one_model_s_own(
    wall: Wall, call: object, model: str
) -> None:
    outcome = call(wall, both("", (model, "sound"), []), streamed=True)

    assert outcome.text == " ".join(WORDS[:TWO_THIRDS])
    assert isinstance(outcome.error, INTERRUPTED)
    assert outcome.error.llm_name == model
    assert wall.visits_to("sound") == []


def test_a_stream_that_lost_a_piece_of_its_answer_is_no_success(wall: Wall) -> None:
    fault = both("", ("loses-a-word", "sound"), [("loses-a-word", "error", "invalid_response")])

    outcome = blocking(wall, fault, streamed=True)

    assert_as_expected(outcome, fault.stream, INTERRUPTED, wall)


def test_a_stall_is_noticed_in_the_time_set_and_upstream_is_hung_up(wall: Wall) -> None:
    outcome = blocking(wall, both("", then_sound("stalls"), []), streamed=True)

    assert TIMEOUTS.stall <= outcome.seconds < TIMEOUTS.stall + 1
    assert wall.visits_to("stalls")[0].hung_up.wait(2)


@by_face
def test_keep_alives_end_a_silence_inside_an_answer(wall: Wall, call: object) -> None:
    fault = both("", then_sound("thinks-half-way"), [("thinks-half-way", "ok", None)])
    times = llmbroker.Timeouts(first_token=2, stall=0.3)

    outcome = call(wall, fault, streamed=True, timeouts=times)

    assert_as_expected(outcome, fault.stream, None, wall)
    assert outcome.seconds > wall.pause > times.stall


@pytest.mark.parametrize(
    ("model", "rows"),
    [
        ("only-keeps-alive", passed_over("only-keeps-alive", "error", "timeout")),
        ("thinks-half-way", [("thinks-half-way", "error", "stream_cut")]),
    ],
)
def test_keep_alives_stand_for_content_no_longer_than_a_first_word_may_take(
    wall: Wall, model: str, rows: list[Row]
) -> None:
    times = llmbroker.Timeouts(first_token=0.5, stall=0.3)

    outcome = blocking(wall, both("", then_sound(model), rows), streamed=True, timeouts=times)

    assert outcome.rows == rows
    assert outcome.seconds < times.first_token + 0.5


@by_face
@pytest.mark.parametrize("model", ["silent", "slow"])
@pytest.mark.parametrize("streamed", [False, True], ids=["chat", "stream"])
def test_a_model_that_is_slow_to_begin_is_overtaken_and_hung_up_on(
    wall: Wall, call: object, model: str, streamed: bool
) -> None:
    fault = both("", (model, "sound"), [(model, "superseded", None), OK])
    patient = llmbroker.Timeouts(first_token=10, answer=10)

    outcome = call(wall, fault, streamed=streamed, hedge_after=0.1, timeouts=patient)

    assert set(outcome.rows) == set(fault.chat)
    assert_answered_by(outcome, "sound")
    assert_sound_books(outcome, wall)
    assert outcome.seconds < 1
    assert wall.visits_to(model)[0].hung_up.wait(2)


def test_a_dead_provider_is_waited_for_no_longer_than_the_caller_will(wall: Wall) -> None:
    patient = llmbroker.Timeouts(first_token=10, answer=10)
    with llmbroker.Broker(**broker_options(wall, ("silent",), timeouts=patient)) as broker:
        started = time.monotonic()
        with pytest.raises(llmbroker.NoLLMAvailableError):
            broker.chat(QUESTION, wait=0.3)

        assert 0.3 <= time.monotonic() - started < 1.3
        assert wall.visits_to("silent")[0].hung_up.wait(2)
        assert broker.snapshot()["silent"].usable


def test_a_prefill_is_turned_into_what_the_fallback_takes(wall: Wall) -> None:
    blocking(wall, both("", ("unavailable", "no-prefill"), [], messages=PREFILLED), streamed=True)

    (visit,) = wall.visits_to("no-prefill")
    assert visit.body["messages"][:2] == PREFILLED
    assert visit.last_role == "user"


def test_a_cut_answer_is_never_sent_on_as_a_prefill(wall: Wall) -> None:
    outcome = blocking(wall, both("", ("cut", "no-prefill"), []), streamed=False)

    assert_answered_by(outcome, "no-prefill")
    assert wall.visits_to("no-prefill")[0].body["messages"] == QUESTION


@by_face
@pytest.mark.parametrize("streamed", [False, True], ids=["chat", "stream"])
def test_usage_is_booked_on_the_model_that_answered_and_on_no_other(
    wall: Wall, call: object, streamed: bool
) -> None:
    outcome = call(wall, FAULTS[-1], streamed=streamed)

    *failed, answered = outcome.journal
    assert [row.usage for row in failed] == [None, None]
    assert (answered.llm_name, answered.model, answered.model_answered) == ("sound",) * 3
    assert answered.usage == SPENT
    assert [row.http_status for row in outcome.journal] == [None, 503, 200]
    assert [row.streamed for row in outcome.journal] == [streamed] * 3


def test_a_pooled_connection_that_died_is_replaced_unnoticed(wall: Wall) -> None:
    with llmbroker.Broker(**broker_options(wall, ("sound",))) as broker:
        broker.chat(QUESTION)
        wall.drop_connections()

        assert broker.chat(QUESTION).text == ANSWER
        assert [row.status for row in broker.calls()] == [CallStatus.OK] * 2


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_next_call_after_a_fault_is_answered(wall: Wall, fault: Fault) -> None:
    options = broker_options(wall, (*fault.pool, "sound/spare"))
    with llmbroker.Broker(**options) as broker:
        try:
            for _ in broker.stream(messages=fault.messages):
                pass
        except llmbroker.LLMRequestError:
            broker.disable_llm(fault.pool[0])

        assert broker.chat(QUESTION).text == ANSWER
