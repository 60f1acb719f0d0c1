"""What is kept, how long, and that it can be read by nobody else."""

import asyncio
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from uuid_utils.compat import uuid7

from journal.adapters import DjangoStore
from journal.figures.adding_up import add_up
from journal.models import Call, DailyFigures, Payload, Rating, RetentionPolicy
from journal.payloads import keep_payload, open_payload, payload_rules
from journal.retention import apply_retention, delete_calls, erase_journal
from journal.selectors import Reach
from journal.statistics import Period, statistics_of
from llmbroker import models as engine
from llmbroker.attribution import attributed
from tenants.errors import SecretUnavailable
from tests.journal.support import NOON, client_of

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)
MESSAGES = [{"role": "user", "content": "secret question \x00"}]
ANSWER = {"role": "assistant", "content": "secret answer"}


@pytest.fixture(autouse=True)
def _rules():
    payload_rules.forget()


def rule(person, **columns):
    return RetentionPolicy.objects.create(tenant_id=person.tenant.id, **columns)


def said(call, person):
    keep_payload(
        scope_id=person.scope.id, call_id=call.id, said={"messages": MESSAGES, "answer": ANSWER}
    )


class TestRetention:
    def test_deletes_what_a_tenant_does_not_keep_and_nothing_else(self, alice, charlie, journaled):
        rule(alice, metadata_days=10)
        old, young = journaled(alice, NOON - 11 * DAY), journaled(alice, NOON - 9 * DAY)
        others = journaled(charlie, NOON - 400 * DAY)
        Rating.objects.create(call=old, scope_id=old.scope_id, tenant_id=old.tenant_id, score=1.0)
        assert apply_retention(now=NOON)["calls"] == 1
        assert set(Call.objects.values_list("id", flat=True)) == {young.id, others.id}
        assert not Rating.objects.exists()

    def test_of_payloads_has_days_of_its_own(self, alice, journaled):
        rule(alice, payload_days=3)
        old, young = journaled(alice, NOON - 4 * DAY), journaled(alice, NOON - 2 * DAY)
        said(old, alice)
        said(young, alice)
        assert apply_retention(now=NOON) == {"calls": 0, "payloads": 1}
        assert Payload.objects.get().id == young.id

    def test_without_a_rule_is_the_installations(self, alice, journaled, settings):
        journaled(alice, NOON - 11 * DAY)
        assert apply_retention(now=NOON)["calls"] == 0
        settings.JOURNAL_METADATA_DAYS = 10
        assert apply_retention(now=NOON)["calls"] == 1

    def test_goes_in_batches(self, alice, journaled):
        for hours in range(7):
            journaled(alice, NOON + timedelta(hours=hours))
        before = NOON + timedelta(hours=6)
        with CaptureQueriesContext(connection) as queries:
            assert list(delete_calls(tenant_id=alice.tenant.id, before=before, batch=4)) == [4, 2]
        assert Call.objects.count() == 1
        assert sum("DELETE" in query["sql"] for query in queries) == 2

    def test_is_a_command(self, alice, journaled, capsys):
        rule(alice, metadata_days=1)
        journaled(alice, timezone.now() - 2 * DAY)
        call_command("journal_retention")
        assert capsys.readouterr().out == "Deleted 1 calls and 0 payloads.\n"


class TestErasing:
    def test_a_tenant_leaves_nothing_of_it(self, alice, bob, charlie, journaled):
        for person in (alice, bob, charlie):
            said(journaled(person), person)
        call_command("journal_sweep")
        erase_journal(tenant_id=alice.tenant.id)
        for model in (Call, Payload):
            assert set(model.objects.values_list("tenant_id", flat=True)) == {charlie.tenant.id}
        assert not DailyFigures.objects.filter(tenant_id=alice.tenant.id).exists()
        assert DailyFigures.objects.filter(tenant_id=charlie.tenant.id).exists()

    @pytest.mark.parametrize("added_up", [True, False])
    def test_a_tenant_leaves_the_installations_counts_as_they_are(
        self, alice, charlie, journaled, added_up
    ):
        if added_up:
            journaled(charlie, NOON)
            add_up(now=NOON + DAY)
        for hours in range(0, 60, 7):
            journaled(alice, NOON + timedelta(hours=hours), cost_micros=5, key_id="k")
        for hours in range(0, 60, 9):
            journaled(charlie, NOON + timedelta(hours=hours), latency_ms=100)
        Rating.objects.create(
            call=(rated := journaled(alice, NOON)),
            scope_id=rated.scope_id,
            tenant_id=rated.tenant_id,
            score=0.0,
        )
        week = Period(NOON - 2 * DAY, NOON + 5 * DAY)
        before = statistics_of(Reach(), week).totals
        erase_journal(tenant_id=alice.tenant.id)
        add_up(now=NOON + 4 * DAY)
        assert statistics_of(Reach(), week).totals == before
        assert not Rating.objects.exists()

    def test_the_command_destroys_the_keys_before_the_journal_is_touched(
        self, alice, journaled, monkeypatch
    ):
        said(journaled(alice), alice)

        def stopped(**_):
            raise KeyboardInterrupt

        monkeypatch.setattr("journal.retention.delete_payloads", stopped)
        with pytest.raises(KeyboardInterrupt):
            call_command("erase_tenant", alice.tenant.slug, confirm=alice.tenant.slug)
        with pytest.raises(SecretUnavailable):
            open_payload(Payload.objects.get())
        monkeypatch.undo()
        call_command("erase_tenant", alice.tenant.slug, confirm=alice.tenant.slug)
        assert not Call.objects.exists()


class TestAPayload:
    def test_is_sealed_and_opens_for_its_call_alone(self, alice, journaled):
        one, other = journaled(alice), journaled(alice)
        said(one, alice)
        said(other, alice)
        payload = Payload.objects.get(id=one.id)
        assert b"secret" not in bytes(payload.sealed)
        opened = open_payload(payload)
        assert opened["messages"][0]["content"] == "secret question ␀"
        assert opened["answer"] == ANSWER
        payload.sealed = Payload.objects.get(id=other.id).sealed
        with pytest.raises(SecretUnavailable):
            open_payload(payload)

    def test_is_unreadable_once_its_data_key_is_gone(self, alice, journaled):
        call = journaled(alice)
        said(call, alice)
        Payload.objects.update(data_key_id=uuid7())
        answer = client_of(alice).get(f"/api/v1/calls/{call.id}/payload")
        assert answer.status_code == 503
        assert b"secret question" not in answer.content

    def test_is_read_over_http(self, alice, journaled):
        call = journaled(alice)
        assert client_of(alice).get(f"/api/v1/calls/{call.id}/payload").status_code == 404
        said(call, alice)
        body = client_of(alice).get(f"/api/v1/calls/{call.id}/payload").json()
        assert body["answer"] == ANSWER


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("of_tenant", "of_call", "kept"),
    [(None, None, 0), (None, True, 1), (True, None, 1), (True, False, 0), (False, None, 0)],
)
def test_payloads_are_kept_only_where_the_tenant_or_the_call_asks(alice, of_tenant, of_call, kept):
    if of_tenant is not None:
        rule(alice, keep_payloads=of_tenant)
    call = engine.Call(
        id=str(uuid7()),
        llm_name="small",
        operation=None,
        trace_id=None,
        status=engine.CallStatus.OK,
        scope=str(alice.scope.id),
    )

    async def record():
        with attributed(keep_payload=of_call):
            await DjangoStore().record_payload(call, MESSAGES, ANSWER)

    asyncio.run(record())
    assert Payload.objects.count() == kept
