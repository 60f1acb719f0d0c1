"""What the engine hands over, and what the journal makes of it."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from django.db import connection, transaction
from uuid_utils.compat import uuid7

from journal.adapters import DjangoStore
from journal.batches import Kind, record_of, write_possible
from journal.models import Call as Row
from journal.rows import row_of
from journal.services import rate
from llmbroker.errors import LLMBrokerError
from llmbroker.models import Call, CallStatus, Usage
from tenants.errors import NotFound

pytestmark = pytest.mark.django_db


@pytest.fixture
def call(alice):
    return Call(
        id=str(uuid7()),
        llm_name="small",
        operation="chat",
        trace_id="t",
        status=CallStatus.OK,
        ts=datetime(2026, 3, 1, 12, tzinfo=UTC),
        scope=str(alice.scope.id),
    )


def write(kind, call):
    """Over the test's own connection, so that it ends with the test's transaction."""
    row = row_of(call)
    if kind is Kind.INTENT:
        row.status = "started"
    connection.ensure_connection()
    return write_possible(connection.connection, [record_of(kind, row)])


def write_intent(call):
    return write(Kind.INTENT, call)


def write_outcome(call):
    return write(Kind.OUTCOME, call)


def written(call):
    write_outcome(call)
    return Row.objects.get(id=call.id)


class TestTheRow:
    def test_belongs_to_the_tenant_of_its_scope(self, call, alice):
        assert written(call).tenant_id == alice.scope.tenant_id

    def test_is_refused_where_the_scope_is_not_known(self, call):
        (fault,) = write_intent(replace(call, scope=str(uuid4())))
        assert isinstance(fault, LLMBrokerError)
        assert "no scope" in str(fault)

    @pytest.mark.parametrize("identity", ["chatcmpl-1", "6f1c2f0e-3c54-4c2e-9a51-2d7f6f0f2c11"])
    def test_is_refused_under_an_id_that_has_no_time_in_it(self, call, identity):
        with pytest.raises(ValueError, match="UUID"):
            row_of(replace(call, id=identity))

    def test_takes_its_time_from_its_id_where_none_is_given(self, call):
        identity = str(uuid7(nanoseconds=1_767_225_600_123_000_000))
        row = written(replace(call, id=identity, ts=None))
        assert row.ts == datetime(2026, 1, 1, 0, 0, 0, 123000, tzinfo=UTC)

    def test_without_a_status_has_an_unknown_outcome(self, call):
        assert written(replace(call, status=None)).status == "unknown"

    def test_is_not_closed_by_a_call_of_another_scope(self, call, charlie):
        write_intent(call)
        write_outcome(replace(call, scope=str(charlie.scope.id)))
        assert Row.objects.get(id=call.id, scope_id=call.scope).status == "started"


class TestOddText:
    @pytest.mark.parametrize(
        ("given", "kept"),
        [
            ("nul:\x00", "nul:␀"),
            ("half:\ud83d pair:🌍 \udc00", "half:� pair:🌍 �"),
            (r"literal:\u0000", r"literal:\u0000"),
            ("привет, oʻzbek, 👩🏽‍🚀", "привет, oʻzbek, 👩🏽‍🚀"),
        ],
    )
    def test_is_kept_with_visible_marks(self, call, given, kept):
        texts = dict.fromkeys(
            ("operation", "trace_id", "llm_name", "model_answered", "error_detail"), given
        )
        row = written(replace(call, **texts))
        assert {getattr(row, name) for name in texts} == {kept}

    def test_is_cut_visibly_to_its_column(self, call):
        row = written(replace(call, error_detail="я" * 5000, base_url="u" * 900))
        assert len(row.error_detail) == 2000
        assert row.error_detail.endswith("…")
        assert len(row.base_url) == 500

    @pytest.mark.django_db(transaction=True)
    def test_still_finds_its_calls(self, call):
        trace = "trace \x00" + "x" * 5000
        with transaction.atomic():
            Row.objects.exists()  # has the transaction told whose rows these are
            written(replace(call, trace_id=trace))
        found = asyncio.run(DjangoStore().calls(limit=10, scope=call.scope, trace_id=trace))
        assert [one.id for one in found] == [call.id]


class TestOddFigures:
    @pytest.mark.parametrize(
        "figure",
        [
            pytest.param(10**5000, id="5001 digits"),
            2**31,
            -1,
            float("nan"),
            float("inf"),
            "7",
            True,
        ],
    )
    def test_are_unknown(self, call, figure):
        row = written(replace(call, usage=Usage(figure, 1), latency_ms=figure, http_status=figure))
        assert (row.prompt_tokens, row.completion_tokens) == (None, 1)
        assert (row.latency_ms, row.http_status) == (None, None)

    def test_may_be_as_large_as_the_column(self, call):
        assert written(replace(call, usage=Usage(2**31 - 1))).prompt_tokens == 2**31 - 1


class TestARatingByTrace:
    def test_goes_to_the_newest_answered_call(self, alice, journaled):
        journaled(alice, trace_id="t")
        newest = journaled(alice, trace_id="t")
        journaled(alice, trace_id="t", status="error")
        journaled(alice, trace_id="other")
        rating = rate(scope_id=alice.scope.id, trace_id="t", score=0.5, created_by=alice.user)
        assert (rating.call_id, rating.scope_id) == (newest.id, alice.scope.id)
        assert rating.tenant_id == alice.scope.tenant_id

    @pytest.mark.parametrize("status", ["started", "error", "unknown", "superseded"])
    def test_is_refused_where_nothing_was_answered(self, alice, journaled, status):
        journaled(alice, trace_id="t", status=status)
        with pytest.raises(NotFound):
            rate(scope_id=alice.scope.id, trace_id="t", score=0.5)


@pytest.mark.django_db(transaction=True)
def test_no_connection_is_held_between_two_methods(call):
    async def write_and_look():
        store = DjangoStore()
        await store.begin(call)
        await store.record(call)
        return connection.pool.get_stats() if connection.pool else {}

    connection.close()
    stats = asyncio.run(write_and_look())
    assert stats["pool_size"] == stats["pool_available"]
