"""The database is really away: a PostgreSQL of the test's own, stopped and started again."""

import os
import threading
from datetime import UTC, datetime
from functools import partial
from uuid import UUID

import orjson
import psycopg
import pytest
from uuid_utils.compat import uuid7

from journal.batches import Kind, Record, record_of
from journal.models import INSTALLATION, Call
from journal.spool import CHUNK, Spool
from journal.writer import GroupWriter, Pace
from llmbroker.errors import LLMBrokerError

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
PACE = Pace(retry=0.1)

AWAY_SECONDS = float(os.environ.get("AWAY_SECONDS", "0.5"))
"""Of the drill under load: `AWAY_SECONDS=60` for the long form."""


@pytest.fixture
def spool(tmp_path):
    return Spool(tmp_path / "spool", max_bytes=10**8, max_seconds=600)


@pytest.fixture
def writer(server, spool):
    writer = GroupWriter(spool, connect=server.connect, pace=PACE)
    yield writer
    writer.close()


def intent(**columns):
    given = {"scope_id": INSTALLATION, "llm_name": "small", "ts": NOON, "status": "started"}
    return record_of(Kind.INTENT, Call(**{"id": uuid7(), **given, **columns}))


def outcome_of(record, **columns):
    return Record(Kind.OUTCOME, {**record.row, "status": "ok", **columns})


def settle(writer, *records):
    futures = [writer.submit(record) for record in records]
    return [future.exception(timeout=30) for future in futures]


def wait_until_replayed(spool):
    for _ in range(round(20 * (30 + 2 * AWAY_SECONDS))):
        if spool.is_empty:
            return
        threading.Event().wait(0.05)
    raise AssertionError("the spool was not written back")


def test_rows_wait_in_the_spool_and_are_written_back_in_order_once(up, writer, spool):
    before, across = intent(), intent()
    assert settle(writer, before, across) == [None, None]

    up.stop()
    during = [intent(latency_ms=number) for number in range(250)]
    assert settle(writer, outcome_of(across, latency_ms=9), *during) == [None] * 251
    assert settle(writer, *map(outcome_of, during)) == [None] * 250
    assert not spool.is_empty

    up.start()
    wait_until_replayed(spool)
    after = intent()
    assert settle(writer, after, outcome_of(after)) == [None, None]
    rows = up.rows()
    assert len(rows) == 253
    assert {status for identity, status in rows if identity != before.row["id"]} == {"ok"}
    assert list(spool._folder.iterdir()) == []


def test_a_caller_goes_on_only_when_its_row_is_on_the_disk(up, writer, spool):
    up.stop()
    one = intent()
    assert settle(writer, one) == [None]
    (file,) = spool._folder.iterdir()
    assert UUID(orjson.loads(file.read_bytes())[1]["id"]) == one.row["id"]
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.timeout(120 + 4 * AWAY_SECONDS)
def test_under_load_nothing_is_lost_or_doubled_while_the_server_goes_and_comes(up, writer, spool):
    answered, stop = [], threading.Event()

    def call():
        while not stop.is_set():
            one = intent()
            assert settle(writer, one) == [None]
            assert settle(writer, outcome_of(one)) == [None]
            answered.append(one.row["id"])

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for _ in range(2):
        threading.Event().wait(0.5)
        up.stop()
        threading.Event().wait(AWAY_SECONDS)
        up.start()
    stop.set()
    for thread in threads:
        thread.join()
    wait_until_replayed(spool)
    assert up.ids() == sorted(answered)
    assert set(up.statuses()) == {"ok"}


def test_a_full_spool_stops_new_calls_but_takes_the_outcomes_of_those_under_way(
    up, server, tmp_path
):
    small = Spool(tmp_path / "small", max_bytes=1, max_seconds=600)
    writer = GroupWriter(small, connect=server.connect, pace=PACE)
    first = intent()
    up.stop()
    assert settle(writer, first) == [None]
    refused, kept = settle(writer, intent(), outcome_of(first))
    assert isinstance(refused, LLMBrokerError)
    assert "no new calls until it is back" in str(refused)
    assert kept is None

    up.start()
    wait_until_replayed(small)
    assert settle(writer, intent()) == [None]
    writer.close()
    assert up.statuses() == ["ok", "started"]


def test_after_the_time_allowed_new_calls_stop_too(up, server, tmp_path):
    now = [1000.0]
    spool = Spool(tmp_path / "s", max_bytes=10**6, max_seconds=60, clock=lambda: now[0])
    writer = GroupWriter(spool, connect=server.connect, pace=PACE)
    up.stop()
    assert settle(writer, intent()) == [None]
    now[0] += 61
    (fault,) = settle(writer, intent())
    assert "away for 61 s" in str(fault)
    writer.close()


class TestWhatAKilledProcessLeftBehind:
    def leave(self, folder, records, tail=b""):
        folder.mkdir()
        lines = [orjson.dumps([each.kind.value, each.row]) + b"\n" for each in records]
        (folder / "1-killed.jsonl").write_bytes(b"".join(lines) + tail)

    def test_is_written_by_another_one(self, up, server, tmp_path):
        one = intent()
        self.leave(tmp_path / "s", [one, outcome_of(one)], tail=b'["intent",{"id":"cut')
        spool = Spool(tmp_path / "s", max_bytes=10**6, max_seconds=60)
        writer = GroupWriter(spool, connect=server.connect, pace=PACE)
        assert settle(writer, intent()) == [None]
        writer.close()
        assert up.statuses() == ["ok", "started"]
        assert list((tmp_path / "s").iterdir()) == []

    def test_is_left_alone_while_that_process_lives(self, up, server, tmp_path):
        spool = Spool(tmp_path / "s", max_bytes=10**6, max_seconds=60)
        spool.append([intent()])
        other = Spool(tmp_path / "s", max_bytes=10**6, max_seconds=60)
        other.write_back(lambda records: pytest.fail("not its rows"))
        assert len(list((tmp_path / "s").iterdir())) == 1
        spool.close()


def test_a_replay_that_breaks_off_is_begun_again(tmp_path):
    spool = Spool(tmp_path / "s", max_bytes=10**6, max_seconds=60)
    first, second = intent(), intent()
    spool.append([first])

    def away(records):
        raise psycopg.OperationalError("away")

    with pytest.raises(psycopg.OperationalError):
        spool.write_back(away)
    spool.append([second])
    replayed = []
    spool.write_back(partial(keep, replayed))
    assert replayed == [str(first.row["id"]), str(second.row["id"])]
    assert spool.is_empty


def test_a_long_outages_rows_are_written_back_a_little_at_a_time(tmp_path):
    spool = Spool(tmp_path / "s", max_bytes=10**9, max_seconds=60)
    rows = [intent() for _ in range(CHUNK + 10)]
    spool.append(rows)
    replayed = []
    spool.write_back(partial(keep, replayed))
    assert (len(replayed), spool.has_own) == (CHUNK, True)
    spool.append([last := intent()])
    spool.write_back(partial(keep, replayed))
    assert replayed == [str(each.row["id"]) for each in (*rows, last)]
    assert spool.is_empty


def test_what_cannot_be_kept_leaves_no_half_line(tmp_path, monkeypatch):
    spool = Spool(tmp_path / "s", max_bytes=10**6, max_seconds=60)
    first, third = intent(), intent()
    spool.append([first])
    with monkeypatch.context() as disk:
        disk.setattr("journal.spool.os.fsync", disk_full)
        with pytest.raises(OSError, match="full"):
            spool.append([intent()])
    spool.append([third])
    replayed = []
    spool.write_back(partial(keep, replayed))
    assert replayed == [str(first.row["id"]), str(third.row["id"])]


def disk_full(descriptor):
    raise OSError("full")


def keep(replayed, records):
    replayed.extend(record.row["id"] for record in records)
    return [None] * len(records)


def test_a_waiting_row_that_the_database_refuses_holds_up_no_other(up, writer, spool, caplog):
    up.stop()
    homeless = intent(scope_id=uuid7())
    good = intent()
    assert settle(writer, homeless, good) == [None, None]
    up.start()
    wait_until_replayed(spool)
    assert up.ids() == [good.row["id"]]
    assert str(homeless.row["id"]) in caplog.text
