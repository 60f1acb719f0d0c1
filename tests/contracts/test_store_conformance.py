"""What every journal does, whatever holds it. A new Store joins the list of implementations."""

import asyncio
from collections.abc import Coroutine
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from uuid import uuid4

import pytest
from uuid_utils.compat import uuid7

from llmbroker.memory import InMemoryStore
from llmbroker.models import Call, CallStatus, KeySource, Rated, Usage
from llmbroker.ports import IntentStore, RatedStore, Store

T = TypeVar("T")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ALICE, BOB = str(uuid4()), str(uuid4())


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def postgresql_store():
    from journal.adapters import DjangoStore
    from tenants.models import Scope, Tenant

    tenant = Tenant.objects.create(slug="acme", name="Acme")
    Scope.objects.create(id=ALICE, tenant=tenant, kind=Scope.Kind.SHARED, name="Shared")
    other = Tenant.objects.create(slug="globex", name="Globex")
    Scope.objects.create(id=BOB, tenant=other, kind=Scope.Kind.SHARED, name="Shared")
    return DjangoStore()


@pytest.fixture(
    params=[
        pytest.param(InMemoryStore, id="memory"),
        pytest.param(
            postgresql_store, id="postgresql", marks=pytest.mark.django_db(transaction=True)
        ),
    ]
)
def store(request):
    return request.param()


def attempt(ts=NOON, **changes):
    nanoseconds = int(ts.timestamp()) * 10**9 + ts.microsecond * 1000
    intent = Call(
        id=str(uuid7(nanoseconds=nanoseconds)),
        llm_name="small",
        operation=None,
        trace_id=None,
        status=CallStatus.STARTED,
        ts=ts,
        scope=ALICE,
    )
    return replace(intent, **changes)


def answered(ts=NOON, **changes):
    return attempt(ts, status=CallStatus.OK, **changes)


def recorded(store, *calls):
    for call in calls:
        run(store.record(call))
    return calls


def ids(calls):
    return [call.id for call in calls]


def test_it_offers_the_ports_methods(store):
    assert isinstance(store, Store)
    assert isinstance(store, IntentStore)


class TestAnAttempt:
    def test_is_readable_as_started_before_its_outcome(self, store):
        call = attempt()
        run(store.begin(call))
        assert run(store.calls(limit=10)) == [call]

    def test_is_one_row_with_its_outcome(self, store):
        intent = attempt()
        outcome = replace(intent, status=CallStatus.OK, latency_ms=12, usage=Usage(3, 4, 7))
        run(store.begin(intent))
        run(store.record(outcome))
        assert run(store.calls(limit=10)) == [outcome]

    def test_needs_no_intent(self, store):
        (outcome,) = recorded(store, answered())
        assert run(store.calls(limit=10)) == [outcome]

    def test_keeps_its_first_outcome(self, store):
        first = answered(latency_ms=12)
        recorded(store, first, replace(first, status=CallStatus.ERROR, latency_ms=13))
        assert run(store.calls(limit=10)) == [first]

    def test_is_not_reopened_by_a_late_intent(self, store):
        intent = attempt()
        outcome = replace(intent, status=CallStatus.OK)
        run(store.record(outcome))
        run(store.begin(intent))
        assert run(store.calls(limit=10)) == [outcome]

    def test_keeps_every_field(self, store):
        call = answered(
            operation="summary",
            trace_id="trace-1",
            http_status=200,
            latency_ms=1200,
            error_detail="detail",
            usage=Usage(10, 20, 30, 4, 5),
            cooldown_until=NOON + timedelta(minutes=5),
            base_url="https://api.example/v1",
            model="small-1",
            model_answered="small-1-2026",
            key_id="key-7",
            key_source=KeySource.SHARED,
            error_class="RateLimitError",
            first_token_ms=300,
            streamed=True,
            provider_id="chatcmpl-1",
            run="run-1",
            step=3,
            cost_micros=1234,
            price="list 1 small-1",
        )
        unset = {name.name for name in fields(Call) if getattr(call, name.name) is None}
        assert unset == {"score"}
        recorded(store, call)
        assert run(store.calls(limit=10)) == [call]

    def test_tells_unknown_usage_from_zero(self, store):
        recorded(store, answered(usage=Usage(prompt_tokens=0)))
        assert run(store.calls(limit=10))[0].usage == Usage(prompt_tokens=0)

    @pytest.mark.parametrize("text", ["погода в Москве", "oʻzbekcha soʻz", "👩🏽‍🚀 и 🌍"])
    def test_keeps_text_of_every_alphabet(self, store, text):
        recorded(store, answered(operation=text, trace_id=text, error_detail=text))
        (call,) = run(store.calls(limit=10, operation=text, trace_id=text))
        assert (call.operation, call.trace_id, call.error_detail) == (text, text, text)

    def test_may_belong_to_no_scope(self, store):
        (call,) = recorded(store, answered(scope=None))
        assert run(store.calls(limit=10)) == [call]

    def test_is_not_lost_among_many_at_once(self, store):
        calls = [answered(NOON + timedelta(seconds=second)) for second in range(40)]

        async def all_at_once():
            await asyncio.gather(*(store.begin(call) for call in calls))
            await asyncio.gather(*(store.record(call) for call in calls))
            return await store.calls(limit=100)

        assert sorted(ids(run(all_at_once()))) == sorted(ids(calls))


class TestReading:
    def test_begins_with_the_newest(self, store):
        calls = recorded(store, *(answered(NOON + timedelta(hours=hour)) for hour in range(4)))
        assert ids(run(store.calls(limit=3))) == ids(reversed(calls[1:]))

    @pytest.mark.parametrize("limit", [0, -1])
    def test_refuses_a_limit_below_one(self, store, limit):
        with pytest.raises(ValueError, match="limit"):
            run(store.calls(limit=limit))

    @pytest.mark.parametrize(
        "filters",
        [
            {"scope": ALICE},
            {"operation": "chat"},
            {"trace_id": "t"},
            {"scope": ALICE, "operation": "chat", "trace_id": "t"},
        ],
    )
    def test_gives_what_matches_every_filter(self, store, filters):
        wanted = answered(scope=ALICE, operation="chat", trace_id="t")
        later = NOON + timedelta(minutes=1)
        recorded(store, wanted, answered(later, scope=BOB, operation="other", trace_id="u"))
        assert ids(run(store.calls(limit=10, **filters))) == [wanted.id]

    def test_finds_a_call_by_its_id(self, store):
        one, _ = recorded(store, answered(), answered(NOON + timedelta(minutes=1)))
        assert ids(run(store.calls(limit=10, call_id=one.id))) == [one.id]

    @pytest.mark.parametrize("call_id", ["01997a3c-0000-7000-8000-00000000000a", "no id at all"])
    def test_finds_nothing_under_an_unknown_id(self, store, call_id):
        recorded(store, answered())
        assert run(store.calls(limit=10, call_id=call_id)) == []

    def test_never_finds_another_scopes_call_by_its_id(self, store):
        (call,) = recorded(store, answered(scope=BOB))
        assert run(store.calls(limit=10, scope=ALICE, call_id=call.id)) == []

    def test_since_includes_its_moment(self, store):
        before, at, after = recorded(
            store,
            answered(NOON - timedelta(microseconds=1)),
            answered(NOON),
            answered(NOON + timedelta(days=1)),
        )
        assert before.id not in ids(run(store.calls(limit=10, since=NOON)))
        assert ids(run(store.calls(limit=10, since=NOON))) == [after.id, at.id]


class TestARating:
    def test_is_read_with_its_call(self, store):
        (call,) = recorded(store, answered())
        run(store.record_quality(call.id, 0.25, scope=ALICE))
        assert run(store.calls(limit=10)) == [replace(call, score=0.25)]

    def test_gives_way_to_a_newer_one(self, store):
        (call,) = recorded(store, answered())
        for score in (0.2, 1.0, 0.0):
            run(store.record_quality(call.id, score))
        assert run(store.calls(limit=10))[0].score == 0.0

    @pytest.mark.parametrize("score", [-0.1, 1.1, float("nan"), float("inf"), True])
    def test_outside_0_to_1_is_refused(self, store, score):
        (call,) = recorded(store, answered())
        with pytest.raises(ValueError, match=r"0\.0 and 1\.0"):
            run(store.record_quality(call.id, score))
        assert run(store.calls(limit=10))[0].score is None

    @pytest.mark.parametrize("call_id", ["01997a3c-0000-7000-8000-00000000000a", "no id at all"])
    def test_of_an_unknown_call_is_refused(self, store, call_id):
        with pytest.raises(KeyError):
            run(store.record_quality(call_id, 0.5))

    def test_of_another_scopes_call_is_refused(self, store):
        (call,) = recorded(store, answered(scope=BOB))
        with pytest.raises(KeyError):
            run(store.record_quality(call.id, 0.5, scope=ALICE))
        assert run(store.calls(limit=10))[0].score is None


def test_it_gives_the_newest_rating_of_each_rated_call_of_a_scope(store):
    assert isinstance(store, RatedStore)
    first, second, unrated, foreign = recorded(
        store,
        answered(NOON, operation="sum"),
        answered(NOON + timedelta(seconds=1), llm_name="large"),
        answered(NOON + timedelta(seconds=2)),
        answered(NOON + timedelta(seconds=3), scope=BOB),
    )
    for call, score in ((first, 0.1), (first, 0.9), (second, 0.4), (foreign, 1.0)):
        run(store.record_quality(call.id, score, scope=call.scope))

    found = run(store.ratings(limit=10, scope=ALICE))

    assert sorted(found, key=lambda each: each.score) == [
        Rated(None, "large", 0.4),
        Rated("sum", "small", 0.9),
    ]
    assert run(store.ratings(limit=1, scope=ALICE)) == []
    assert unrated.id not in ids(run(store.calls(limit=10, scope=BOB)))
