"""Many callers, one commit: what the writer keeps, refuses and tells."""

import asyncio
import threading
from uuid import uuid4

import pytest
from django.db import connection
from uuid_utils.compat import uuid7

from journal.batches import Kind, Record, record_of
from journal.models import Call
from journal.spool import Spool
from journal.writer import GroupWriter, Pace
from llmbroker.errors import LLMBrokerError
from tests.journal.support import NOON

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def writer(tmp_path):
    writer = GroupWriter(Spool(tmp_path, max_bytes=10**6, max_seconds=60), pace=Pace(window=0.05))
    yield writer
    writer.close()


def record(person, kind=Kind.INTENT, **columns):
    given = {"scope_id": person.scope.id, "llm_name": "small", "ts": NOON, "status": "started"}
    return record_of(kind, Call(**{"id": uuid7(), **given, **columns}))


def settled(futures):
    return [future.exception(timeout=20) for future in futures]


def transactions():
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(DISTINCT xmin::text) FROM journal_call")
        return cursor.fetchone()[0]


def test_calls_at_the_same_time_share_a_commit(alice, writer):
    records = [record(alice) for _ in range(200)]
    assert settled([writer.submit(each) for each in records]) == [None] * 200
    assert Call.objects.count() == 200
    assert transactions() <= 10


def test_a_row_is_durable_when_its_caller_goes_on(alice, writer):
    one = record(alice)
    writer.submit(one).result(timeout=20)
    assert Call.objects.get().id == one.row["id"]


def test_the_tenant_of_each_row_is_that_of_its_scope(alice, charlie, writer):
    assert settled(writer.submit(record(person)) for person in (alice, charlie)) == [None, None]
    assert set(Call.objects.values_list("scope_id", "tenant_id")) == {
        (person.scope.id, person.scope.tenant_id) for person in (alice, charlie)
    }


def test_a_refused_row_does_not_take_its_neighbours_with_it(alice, writer):
    good = [record(alice) for _ in range(5)]
    bad = [record(alice, scope_id=uuid4()), record(alice, status="no such status")]
    faults = settled([writer.submit(each) for each in (*good[:2], *bad, *good[2:])])
    assert [type(fault) for fault in faults] == [
        *[type(None)] * 2,
        *[LLMBrokerError] * 2,
        *[type(None)] * 3,
    ]
    assert "no scope" in str(faults[2])
    assert "no such status" not in str(faults[3])
    assert Call.objects.count() == 5


def test_intent_and_outcome_of_one_batch_are_one_row(alice, writer):
    intent = record(alice)
    outcome = Record(Kind.OUTCOME, {**intent.row, "status": "ok", "latency_ms": 7})
    settled([writer.submit(outcome), writer.submit(intent)])
    assert list(Call.objects.values_list("status", "latency_ms")) == [("ok", 7)]


def test_an_outcome_twice_in_one_batch_is_written_once(alice, writer):
    outcome = record(alice, Kind.OUTCOME, status="ok")
    assert settled([writer.submit(outcome), writer.submit(outcome)]) == [None, None]
    assert Call.objects.count() == 1


def test_a_caller_that_goes_away_takes_no_row_back(alice, writer):
    async def cancelled():
        waiting = asyncio.ensure_future(asyncio.wrap_future(writer.submit(record(alice))))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)

    asyncio.run(cancelled())
    writer.close()
    assert Call.objects.count() == 1


def test_closing_writes_what_was_handed_in_and_ends_the_thread(alice, writer):
    futures = [writer.submit(record(alice)) for _ in range(30)]
    thread = writer._thread
    writer.close()
    assert all(future.done() for future in futures)
    assert not thread.is_alive()


def test_a_closed_writer_starts_anew(alice, writer):
    writer.submit(record(alice)).result(timeout=20)
    writer.close()
    writer.submit(record(alice)).result(timeout=20)
    assert Call.objects.count() == 2


def test_a_silent_writer_gives_its_connection_up(alice, tmp_path):
    spool = Spool(tmp_path, max_bytes=10**6, max_seconds=60)
    writer = GroupWriter(spool, pace=Pace(idle=0.01))
    writer.submit(record(alice)).result(timeout=20)
    for _ in range(500):
        if writer._connection is None:
            break
        threading.Event().wait(0.01)
    writer.submit(record(alice)).result(timeout=20)
    writer.close()
    assert Call.objects.count() == 2
