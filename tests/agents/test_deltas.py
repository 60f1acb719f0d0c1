"""What models say, told to whoever listens while they say it, and kept once it is whole."""

import asyncio
import socket
import threading
import time
from dataclasses import replace

import pytest
from django.conf import settings
from django.test.utils import override_settings
from redis import Redis

from agents.models import Run
from agents.services.cancelling import cancel_run
from agents.services.worker import Pace, RunWorker
from agents.streams import publishing, telling
from agents.streams.frames import channel_of
from llmbroker import Broker, CallStatus, InMemoryRegistry, InMemoryStore, LLMConfig
from tenants.context import all_tenants
from tenants.database import in_thread
from tests.agents.helpers import MODEL_KEY, worker_dies
from tests.support.event_stream import stream_of
from tests.support.model_server import ask, fail, say, tell
from tests.support.web_server import serving

pytestmark = pytest.mark.django_db(transaction=True)

SCHEMA = {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]}
LIVE = ("message.delta", "message.reset", "reasoning.delta")


@pytest.fixture
def server():
    with serving() as url:
        yield url


@pytest.fixture
def listened(server, alice):
    """``listened(run, work)``: what a stream of the run shows while ``work(run)`` goes on.

    ``on_delta()`` is called when the first words have been heard.
    """

    async def scenario(run, work, on_delta):
        async with stream_of(server, run, alice.token) as stream:
            assert (await stream.next())["event"] == "run.queued"
            await until_redis_knows_of_a_listener(run)
            working = asyncio.ensure_future(in_thread(beside, work, run))
            found = []
            while (event := await stream.next()) is not None:
                found.append(event)
                if event["event"] == "message.delta":
                    on_delta()
            await working
            return found

    return lambda run, work, on_delta=bool: asyncio.run(scenario(run, work, on_delta))


async def until_redis_knows_of_a_listener(run):
    redis = Redis.from_url(settings.REDIS_URL)
    async with asyncio.timeout(20):
        while not await asyncio.to_thread(redis.pubsub_channels, channel_of(run.id)):  # noqa: ASYNC110 - Redis tells nobody
            await asyncio.sleep(0.01)


def beside(work, run):
    with all_tenants("tests", routine=True):
        work(run)


def shown(events, *kinds):
    """(type, data) of the events of these types, else of those that are not kept."""
    return [
        (event["event"], event["data"]["data"])
        for event in events
        if event["event"] in (kinds or LIVE)
    ]


def said(events):
    """The text of the deltas since the last reset; pieces are numbered without a gap."""
    texts = []
    for kind, data in shown(events):
        if kind == "message.reset":
            texts.clear()
        else:
            assert data["index"] == len(texts)
            texts.append(data["delta"])
    return "".join(texts)


def kinds_of(events):
    return [event["event"] for event in events]


def was_streamed(request):
    return request.body.get("stream", False)


def test_deltas_arrive_while_the_model_speaks_and_the_answer_is_kept(
    listened, model, broker, start, advance
):
    gate = threading.Event()
    model.script(tell("Hel", "lo", usage=(7, 2)).behind(gate))
    run = start()
    events = listened(run, advance, on_delta=gate.set)  # the model ends only when it was heard
    kind, first = shown(events)[0]
    assert (kind, first["step"], first["index"]) == ("message.delta", 1, 0)
    assert said(events) == "Hello"
    kinds = kinds_of(events)
    assert kinds.index("step.started") < kinds.index("message.delta")
    assert kinds.index("step.completed") > max(
        place for place, kind in enumerate(kinds) if kind == "message.delta"
    )
    assert all("id" not in event for event in events if event["event"] in LIVE)
    assert shown(events, "message.completed") == [
        ("message.completed", {"step": 1, "text": "Hello"})
    ]
    run.refresh_from_db()
    assert (run.status, run.output_text) == ("completed", "Hello")
    assert run.usage["total_tokens"] == 9
    (row,) = broker.calls()
    assert (row.streamed, row.usage.total_tokens, row.run) == (True, 9, str(run.id))
    assert row.first_token_ms is not None
    assert not run.events.filter(type__in=LIVE).exists()


def test_nothing_is_streamed_where_nobody_listens(model, start, advance):
    model.script(tell("Hello"), say("Hello"))
    assert advance(start(deltas=True)).output_text == "Hello"
    assert advance(start()).output_text == "Hello"
    assert [was_streamed(each) for each in model.requests] == [True, False]


def test_a_run_says_by_itself_that_its_deltas_are_wanted(api, alice, advance, model):
    model.script(tell("Hello"))
    body = {"messages": [{"role": "user", "content": "Hi"}], "deltas": True}
    created = api(alice.token).post("/api/v1/runs", body, format="json").json()
    assert created["deltas"] is True
    with all_tenants("tests", routine=True):
        advance(Run.objects.get(id=created["id"]))
    assert was_streamed(model.requests[0])


def test_an_answer_that_breaks_off_is_void_and_made_again_by_another_model(
    listened, model, start, advance
):
    configs = [
        LLMConfig("first", model.base_url, "m1", "MODEL_KEY", weight=0.9),
        LLMConfig("second", model.base_url, "m2", "MODEL_KEY", weight=0.1),
    ]
    model.script(tell("I would s", "ay", cut=True, pause=0.2), tell("Good ", "day"))
    registry = InMemoryRegistry(configs)
    with Broker(registry, secrets={"MODEL_KEY": MODEL_KEY}, store=InMemoryStore()) as broker:
        events = listened(start(), lambda run: advance(run, broker=broker))
        rows = broker.calls()
    assert kinds_of(events).count("message.reset") == 1
    assert said(events) == "Good day"
    assert "I would say".startswith(said(events[: kinds_of(events).index("message.reset")]))
    assert shown(events, "message.completed")[0][1]["text"] == "Good day"
    assert [(row.llm_name, row.error_class) for row in rows] == [
        ("second", None),
        ("first", "stream_cut"),
    ]


def test_what_a_model_thinks_is_told_apart(listened, model, start, advance):
    thought, answer = tell("Hm", kind="reasoning_content"), tell("Yes")
    model.script(replace(answer, pieces=(thought.pieces[0], *answer.pieces)))
    events = listened(start(), advance)
    assert shown(events) == [
        ("reasoning.delta", {"step": 1, "index": 0, "delta": "Hm"}),
        ("message.delta", {"step": 1, "index": 0, "delta": "Yes"}),
    ]


def test_a_fast_model_does_not_flood(listened, model, start, advance):
    words = [f"{number} " for number in range(2000)]
    model.script(tell(*words))
    events = listened(start(), advance)
    assert said(events) == "".join(words)
    assert len(shown(events)) < 50


def test_a_step_whose_worker_was_lost_begins_anew_and_says_so(listened, model, start, advance):
    model.script(tell("Hello"))
    run = start(deltas=True)

    def work(run):
        run.steps.create(number=1, kind="model_call", status="in_progress", attempts=1)
        Run.objects.filter(id=run.id).update(fence=1, status="in_progress")
        worker_dies(run)
        advance(run)

    assert [kind for kind, _ in shown(listened(run, work))] == ["message.reset", "message.delta"]


def test_what_was_said_is_void_where_the_call_fails_in_the_end(listened, model, start, advance):
    model.script(tell("Hel", "lo", cut=True, pause=0.2), fail(400))
    events = listened(start(max_seconds=30), advance)
    assert [kind for kind, _ in shown(events)] == ["message.delta", "message.reset"]
    assert events[-1]["event"] == "run.failed"


def test_redis_that_is_away_harms_no_run(model, start, advance, caplog):
    model.script(ask(("calculate", {"expression": "1 + 1"})), tell("2"))
    run = start(deltas=True, tools=["calculate"])
    publishing.publisher.cache_clear()
    with override_settings(REDIS_URL="redis://127.0.0.1:1/0"):
        began = time.monotonic()
        assert advance(run).output_text == "2"
        assert time.monotonic() - began < 5
    publishing.publisher.cache_clear()


@pytest.fixture
def silent_redis():
    """One that takes connections and never answers."""
    publishing.publisher.cache_clear()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"redis://127.0.0.1:{listening.getsockname()[1]}/0"
        with override_settings(REDIS_URL=url):
            yield
    publishing.publisher.cache_clear()


def test_a_redis_that_does_not_answer_holds_a_run_up_by_moments(
    silent_redis, model, start, advance
):
    model.script(ask(("calculate", {"expression": "1 + 1"})), tell("2"))
    began = time.monotonic()
    assert advance(start(deltas=True, tools=["calculate"])).output_text == "2"
    assert time.monotonic() - began < 3


def test_a_worker_that_is_stopped_voids_what_it_told_and_another_begins_anew(
    broker, native, model, start, listened
):
    gate, heard = threading.Event(), threading.Event()
    model.script(tell("Hel", "lo").behind(gate), tell("Good day"))
    workers = [
        RunWorker(broker, lambda _: native, pace=Pace(look=0.05, hand_over=0.1)) for _ in range(2)
    ]

    def one_after_the_other(run):
        workers[0].start()
        assert heard.wait(20)
        workers[0].stop()
        workers[1].start()

    try:
        events = listened(start(deltas=True), one_after_the_other, on_delta=heard.set)
    finally:
        gate.set()
        workers[1].stop()
    assert kinds_of(events).count("message.reset") == 1
    assert said(events) == "Good day"
    assert shown(events, "message.completed")[0][1] == {"step": 1, "text": "Good day"}


def test_a_run_that_is_cancelled_while_its_model_speaks_ends_at_once(
    broker, native, model, start, listened
):
    gate = threading.Event()
    model.script(tell("Hel", "lo").behind(gate))
    worker = RunWorker(broker, lambda _: native, pace=Pace(look=0.05))

    def cancelled(run):
        worker.start()
        model.wait_for_requests(1)
        cancel_run(run_id=run.id)

    try:
        events = listened(start(deltas=True), cancelled)
    finally:
        gate.set()
        worker.stop()
    assert events[-1]["event"] == "run.cancelled"
    assert said(events) == ""
    assert [row.status for row in broker.calls()] == [CallStatus.INTERRUPTED]


def test_a_worker_hears_within_a_second_who_listens(broker, native, model, start, listened):
    """Of a run that goes on for several steps, and of which nobody had asked for deltas."""
    model.script(ask(("calculate", {"expression": "1 + 1"})).after(1.2), tell("It is ", "2"))
    worker = RunWorker(broker, lambda _: native, pace=Pace(look=0.05))
    try:
        events = listened(start(tools=["calculate"]), lambda _: worker.start())
    finally:
        worker.stop()
    assert [was_streamed(each) for each in model.requests][1] is True
    assert said(events) == "It is 2"


def test_who_listens_is_asked_once_for_all_runs(broker, native, model, start, monkeypatch):
    looks = []
    listened = publishing.Publisher.listened
    monkeypatch.setattr(
        publishing.Publisher, "listened", lambda self: looks.append(1) or listened(self)
    )
    model.answer_with(lambda _: say("Hello"))
    runs = [start() for _ in range(20)]
    worker = RunWorker(broker, lambda _: native, pace=Pace(look=0.05))
    began = time.monotonic()
    worker.start()
    while Run.objects.filter(status="completed").count() < len(runs):
        time.sleep(0.02)
    seconds = time.monotonic() - began
    worker.stop()
    assert len(looks) <= 2 + seconds / telling.LOOK_EVERY


def test_an_answer_that_is_mended_is_not_called_complete(listened, model, start, advance):
    model.script(tell("none"), tell('{"a": 1}'))
    events = listened(start(output_schema=SCHEMA), advance)
    assert shown(events, "message.rejected", "message.completed") == [
        ("message.rejected", {"step": 1}),
        ("message.completed", {"step": 2, "text": '{"a": 1}'}),
    ]


def test_the_channels_of_runs_are_those_that_streams_subscribe_to(settings):
    with Redis.from_url(settings.REDIS_URL) as redis, redis.pubsub() as pubsub:
        run = Run(deltas=False)
        pubsub.subscribe(telling.channel_of(run.id))
        pubsub.get_message(timeout=5)
        assert telling.channel_of(run.id).encode() in publishing.publisher().listened()
