"""Server-sent events of runs, over a real server, PostgreSQL and Redis."""

import asyncio
import threading
import time

import pytest
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.db import transaction
from django.test.utils import override_settings
from django.utils import timezone

from agents.models import Run
from agents.services.dispatch import claim
from agents.services.events import append_events
from agents.streams import hub, publishing, sending
from tenants.context import all_tenants
from tenants.database import in_thread
from tenants.services.tokens import create_token, revoke_token
from tests.agents.helpers import worker_dies
from tests.support.event_stream import stream_of
from tests.support.model_server import ask, say
from tests.support.web_server import serving

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def server():
    with serving() as url:
        yield url


@pytest.fixture
def run(alice):
    return a_run(alice)


@pytest.fixture
def without_redis(monkeypatch):
    """A Redis that is not there, and rounds short enough for a test."""
    monkeypatch.setattr(hub, "ROUND", 0.05)
    publishing.publisher.cache_clear()
    with override_settings(REDIS_URL="redis://127.0.0.1:1/0"):
        yield
    publishing.publisher.cache_clear()


def a_run(person):
    run = Run.objects.create(
        tenant=person.tenant, scope=person.scope, messages=[], trace_id="t", status="in_progress"
    )
    happens(run, "run.queued", "run.in_progress")
    return run


def happens(run, *kinds):
    with all_tenants("tests", routine=True), transaction.atomic():
        append_events(run.id, *((kind, {}) for kind in kinds))


def ends(run):
    with all_tenants("tests", routine=True):
        Run.objects.filter(pk=run.pk).update(status="completed", ended_at=timezone.now())
    happens(run, "run.completed")


def test_a_stream_brings_what_was_and_what_comes_and_ends_with_the_run(server, run, alice):
    async def scenario():
        async with stream_of(server, run, alice.token) as stream:
            assert stream.response.status == 200
            first = [await stream.next(), await stream.next()]
            assert [(each["id"], each["event"]) for each in first] == [
                ("1", "run.queued"),
                ("2", "run.in_progress"),
            ]
            assert first[0]["data"]["object"] == "run.event"
            await in_thread(happens, run, "step.started")
            assert (await stream.next())["id"] == "3"
            await in_thread(ends, run)
            assert await stream.rest() == [(4, "run.completed")]
            return stream.headers

    headers = asyncio.run(scenario())
    assert headers["Content-Type"].startswith("text/event-stream")
    assert headers["X-Accel-Buffering"] == "no"
    assert "no-transform" in headers["Cache-Control"]
    assert headers["X-Request-Id"]


def test_events_arrive_within_a_tenth_of_a_second(server, run, alice):
    async def scenario():
        delays = []
        async with stream_of(server, run, alice.token) as stream:
            await stream.next(), await stream.next()
            await asyncio.sleep(0.2)
            for _ in range(20):
                await in_thread(happens, run, "step.started")
                sent = time.monotonic()
                await stream.next()
                delays.append(time.monotonic() - sent)
        return delays

    delays = sorted(asyncio.run(scenario()))
    assert delays[len(delays) // 2] < 0.1


@pytest.mark.parametrize("how", ["Last-Event-ID", "starting_after", "after"])
def test_a_stream_goes_on_where_another_broke_off(server, run, alice, how):
    ends(run)
    by_header = {"Last-Event-ID": "2"} if how == "Last-Event-ID" else {}

    async def scenario():
        query = "" if by_header else f"?{how}=2"
        async with stream_of(server, run, alice.token, query=query, **by_header) as stream:
            assert await stream.rest() == [(3, "run.completed")]
        async with stream_of(server, run, alice.token, query="?after=3") as stream:
            assert await stream.rest() == []

    asyncio.run(scenario())


def test_without_redis_a_stream_is_complete_and_a_little_late(
    without_redis, server, run, alice, caplog
):
    async def scenario():
        async with stream_of(server, run, alice.token) as stream:
            await stream.next(), await stream.next()
            await in_thread(happens, run, "step.started")
            assert (await stream.next())["id"] == "3"
            await in_thread(ends, run)
            assert await stream.rest() == [(4, "run.completed")]

    asyncio.run(scenario())


def test_what_redis_did_not_tell_is_read_from_the_table(server, run, alice, monkeypatch):
    async def scenario():
        async with stream_of(server, run, alice.token) as stream:
            await stream.next(), await stream.next()
            with monkeypatch.context() as patch:
                patch.setattr(publishing.Publisher, "send", lambda *_: None)
                await in_thread(happens, run, "step.started")
            await in_thread(ends, run)
            assert await stream.rest() == [(3, "step.started"), (4, "run.completed")]

    asyncio.run(scenario())


def test_the_completed_message_comes_with_its_text(server, alice, model, start, advance):
    model.script(ask(("calculate", {"expression": "30 * 1.8 + 32"})), say("86 °F"))
    run = start("How warm is 30 °C?", tools=["calculate"])

    async def scenario():
        async with stream_of(server, run, alice.token) as stream:
            await in_thread(worked, advance, run)
            found = []
            while (event := await stream.next()) is not None:
                found.append(event["data"])
            return found

    events = asyncio.run(scenario())
    kept = [event["sequence_number"] for event in events if event["type"] != "message.delta"]
    assert kept == list(range(1, len(kept) + 1))
    said = [event["data"] for event in events if event["type"] == "message.completed"]
    assert said == [{"step": 3, "text": "86 °F"}]
    assert events[-1]["type"] == "run.completed"


def test_a_stream_is_brought_to_its_end_by_the_worker_that_takes_the_run_over(
    server, alice, model, start, advance
):
    model.script(say("After all."))
    run = start()

    def taken_over():
        with all_tenants("tests", routine=True):
            claim(run.id)
            worker_dies(run)
            advance(run)

    async def scenario():
        async with stream_of(server, run, alice.token) as stream:
            await in_thread(taken_over)
            return await stream.rest()

    events = asyncio.run(scenario())
    assert [number for number, _ in events] == list(range(1, len(events) + 1))
    assert events[-1][1] == "run.completed"
    assert [kind for _, kind in events].count("run.in_progress") == 1


def worked(advance, run):
    with all_tenants("tests", routine=True):
        advance(run)


def test_a_stream_ends_when_its_token_is_revoked(server, run, alice, monkeypatch):
    monkeypatch.setattr(hub, "ROUND", 0.05)
    token = create_token(
        scope=alice.scope, name="t", permissions=["runs:read"], created_by=alice.user
    )

    def revoke():
        with all_tenants("tests", routine=True):
            revoke_token(token=token.row, now=timezone.now())

    async def scenario():
        async with stream_of(server, run, token.text.reveal()) as stream:
            await stream.next(), await stream.next()
            await in_thread(revoke)
            assert await stream.rest() == []

    asyncio.run(scenario())


def test_a_stream_ends_when_its_run_is_deleted(without_redis, server, run, alice):
    def delete():
        with all_tenants("tests", routine=True):
            Run.objects.get(pk=run.pk).delete()

    async def scenario():
        async with stream_of(server, run, alice.token) as stream:
            await stream.next(), await stream.next()
            await in_thread(delete)
            assert await stream.rest() == []

    asyncio.run(scenario())


def test_nobody_else_gets_a_stream(server, run, charlie, bob):
    async def scenario():
        for token in (charlie.token, bob.token, "brk_wrong"):
            async with stream_of(server, run, token) as stream:
                answer = await stream.response.json()
                assert stream.response.status == (401 if token == "brk_wrong" else 404)
                assert answer["error"]["request_id"]

    asyncio.run(scenario())


def test_silence_is_filled_with_comments(server, run, alice, monkeypatch):
    monkeypatch.setattr(sending, "SILENCE", 0.05)

    async def scenario():
        async with stream_of(server, run, alice.token) as stream:
            await stream.next(), await stream.next()
            await asyncio.sleep(0.3)
            await in_thread(happens, run, "step.started")
            assert (await stream.next())["event"] == "step.started"
            return stream.comments

    assert asyncio.run(scenario()) >= 2


def test_middleware_that_compresses_does_not_hold_events_back(run, alice):
    middleware = ["django.middleware.gzip.GZipMiddleware", *settings.MIDDLEWARE]
    with override_settings(MIDDLEWARE=middleware), serving(get_asgi_application()) as server:

        async def scenario():
            headers = {"Accept-Encoding": "gzip, br"}
            async with stream_of(server, run, alice.token, **headers) as stream:
                await stream.next(), await stream.next()
                for number in range(3, 8):
                    await in_thread(happens, run, "step.started")
                    assert (await stream.next())["id"] == str(number)

        asyncio.run(scenario())


def test_many_idle_streams_hold_no_threads_and_share_one_subscription(server, alice):
    runs = [a_run(alice) for _ in range(10)]

    async def scenario():
        async with asyncio.timeout(20):
            streams = [stream_of(server, runs[n % 10], alice.token) for n in range(60)]
            opened = [await each.__aenter__() for each in streams]
            for stream in opened:
                await stream.next(), await stream.next()
            await asyncio.sleep(0.1)
            threads = threading.active_count()
            for run in runs:
                await in_thread(happens, run, "step.started")
            for stream in opened:
                assert (await stream.next())["id"] == "3"
            for each in streams:
                await each.__aexit__(None, None, None)
            return threads

    before = threading.active_count()
    assert asyncio.run(scenario()) - before < 12


def test_streams_that_open_while_the_table_is_looked_at_stay(
    without_redis, server, alice, monkeypatch
):
    runs = [a_run(alice) for _ in range(30)]
    monkeypatch.setattr(hub, "ROUND", 0.0)

    async def opened(stream):
        async with stream as each:
            return [(await each.next())["id"], (await each.next())["id"], await still_open(each)]

    async def still_open(stream):
        with pytest.raises(TimeoutError):
            await stream.next(timeout=0.3)
        return "open"

    async def scenario():
        streams = [stream_of(server, run, alice.token) for run in runs]
        return await asyncio.gather(*map(opened, streams))

    assert asyncio.run(scenario()) == [["1", "2", "open"]] * 30


@pytest.mark.django_db
def test_where_streams_cannot_go_on_the_stored_part_is_answered(api, run, alice):
    answer = api(alice.token).get(
        f"/api/v1/runs/{run.id}/events", headers={"Accept": "text/event-stream"}
    )
    assert answer["Content-Type"].startswith("text/event-stream")
    assert answer.content.decode().count("event: run.") == 2


@pytest.mark.django_db
@pytest.mark.parametrize("text", ["x", "-1", "9" * 12, "²"])
def test_a_last_event_id_that_is_no_number_is_refused(api, run, alice, text):
    answer = api(alice.token).get(f"/api/v1/runs/{run.id}/events", headers={"Last-Event-ID": text})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "Last-Event-ID")
