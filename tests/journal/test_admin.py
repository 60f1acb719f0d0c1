"""The journal's admin pages."""

import json
import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from journal.figures.adding_up import add_up
from journal.models import Call, Rating
from tests.journal.support import NOON

pytestmark = pytest.mark.django_db

CALLS = "/admin/journal/call/"


def page(client, **query):
    answer = client.get(CALLS, query)
    assert answer.status_code == 200
    return answer


def shown(client, **query):
    return [call.id for call in page(client, **query).context["cl"].result_list]


@pytest.fixture
def many(alice, journaled):
    calls = [journaled(alice, NOON + timedelta(seconds=n)) for n in range(120)]
    return [call.id for call in reversed(calls)]


def test_calls_are_listed_newest_first_page_by_page(admin_client, many):
    assert shown(admin_client) == many[:50]
    assert shown(admin_client, p=2) == many[50:100]
    assert shown(admin_client, p=3) == many[100:]


def test_a_page_knows_of_the_next_one_and_counts_no_further(admin_client, many):
    assert page(admin_client).context["cl"].result_count == 100
    assert page(admin_client, p=3).context["cl"].result_count == 120


@pytest.mark.parametrize("number", ["9", "0", "-1", "x", "9" * 30, "¹"])
def test_a_page_that_is_not_there_is_no_fault(admin_client, many, number):
    assert admin_client.get(CALLS, {"p": number}, follow=True).status_code == 200


@pytest.mark.parametrize(
    "query", [{}, {"p": 2}, {"status__exact": "ok"}, {"_facets": "True"}, {"all": ""}, {"o": "8"}]
)
def test_no_page_counts_scans_or_sorts_the_table(admin_client, many, query):
    with CaptureQueriesContext(connection) as queries:
        page(admin_client, **query)
    about_calls = [one["sql"] for one in queries if "journal_call" in one["sql"]]
    assert len(about_calls) == 2
    for sql in about_calls:
        assert "DISTINCT" not in sql
        assert " LIMIT " in sql
        assert re.search(r'ORDER BY ("journal_call"."id"|1) DESC LIMIT', sql)


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ({"status__exact": "error"}, {"status": "error"}),
        ({"key_source__exact": "shared"}, {"key_source": "shared"}),
        ({"streamed__exact": "1"}, {"streamed": True}),
    ],
)
def test_a_filter_narrows_the_list(admin_client, alice, journaled, query, columns):
    journaled(alice)
    wanted = journaled(alice, **columns)
    assert shown(admin_client, **query) == [wanted.id]


def test_a_search_finds_a_call_and_what_belongs_to_a_scope_or_a_tenant(
    admin_client, alice, bob, charlie, journaled
):
    mine, his = journaled(alice, trace_id="t"), journaled(bob)
    journaled(charlie, trace_id="t")
    assert shown(admin_client, q=str(mine.id)) == [mine.id]
    assert shown(admin_client, q=str(alice.scope.id)) == [mine.id]
    assert shown(admin_client, q=str(alice.scope.tenant_id)) == [his.id, mine.id]
    assert shown(admin_client, q=f"{alice.scope.tenant_id} t") == [mine.id]


@pytest.mark.parametrize("text", ["6f1c2f0e-3c54-4c2e-9a51-2d7f6f0f2c11", "t", "%", "' OR 1=1"])
def test_a_search_for_something_else_finds_nothing(admin_client, alice, journaled, text):
    journaled(alice, trace_id="t")
    assert shown(admin_client, q=text) == []


def test_the_list_says_whose_call_it_was(admin_client, alice, journaled):
    journaled(alice)
    assert "acme: alice" in page(admin_client).content.decode()


def test_a_trace_leads_to_its_calls_and_is_only_text(admin_client, alice, journaled):
    trace = "<script>&scope_id=x"
    call = journaled(alice, trace_id=trace)
    html = page(admin_client).content.decode()
    assert "<script>&scope_id" not in html
    assert f"?scope_id={call.scope_id}&amp;trace_id=%3Cscript%3E%26scope_id%3Dx" in html
    assert shown(admin_client, scope_id=call.scope_id, trace_id=trace) == [call.id]


def test_a_call_is_shown_with_its_ratings_and_nothing_to_edit(admin_client, alice, journaled):
    call = journaled(alice, error_detail="detail & more")
    Rating.objects.create(call=call, scope_id=call.scope_id, tenant_id=call.tenant_id, score=0.625)
    html = admin_client.get(f"{CALLS}{call.id}/change/").content.decode()
    assert "detail &amp; more" in html
    assert "0.625" in html
    assert 'name="error_detail"' not in html
    assert 'name="_save"' not in html


@pytest.mark.parametrize("path", ["add/", "{id}/change/", "{id}/delete/"])
def test_nothing_can_be_written(admin_client, alice, journaled, path):
    call = journaled(alice)
    answer = admin_client.post(CALLS + path.format(id=call.id), {"status": "ok", "post": "yes"})
    assert answer.status_code == 403
    assert Call.objects.get().status == call.status


def test_people_without_the_permission_see_nothing(client, alice):
    alice.user.is_staff = True
    alice.user.save()
    client.force_login(alice.user)
    assert client.get(CALLS).status_code == 403


class TestTheFigures:
    FIGURES = "/admin/journal/call/figures/"

    def charts(self, answer):
        drawn = [json.loads(chart.data) for chart in answer.context["charts"]]
        return [{each["label"]: each["data"] for each in one["datasets"]} for one in drawn]

    def test_are_drawn_by_day_up_to_today(self, admin_client, alice, journaled):
        now = timezone.now()
        journaled(alice, now, cost_micros=2_500_000)
        journaled(alice, now - timedelta(days=2), status="error", error_class="<b>timeout")
        answer = admin_client.get(self.FIGURES, {"days": 7})
        calls, cost, _ = self.charts(answer)
        assert calls == {"answered": [0] * 7 + [1], "failed": [None] * 5 + [1, None, None]}
        assert cost == {"cost, $": [0] * 7 + [2.5]}
        text = answer.content.decode()
        assert "&lt;b&gt;timeout" in text
        assert "2 calls, 1 failed." in text

    def test_are_of_one_tenant_where_asked(self, admin_client, alice, charlie, journaled):
        journaled(alice, timezone.now())
        text = admin_client.get(self.FIGURES, {"tenant": charlie.tenant.slug, "days": 7})
        assert "0 calls" in text.content.decode()

    def test_of_a_tenants_own_staff_reach_as_far_back_as_an_operators(
        self, client, alice, journaled
    ):
        journaled(alice, timezone.now() - timedelta(days=5))
        add_up(now=timezone.now())
        alice.user.is_staff = True
        alice.user.save()
        alice.user.user_permissions.add(Permission.objects.get(codename="view_call"))
        client.force_login(alice.user)
        assert "1 calls" in client.get(self.FIGURES, {"days": 30}).content.decode()

    def test_say_where_a_question_makes_no_sense(self, admin_client):
        answer = admin_client.get(self.FIGURES, {"days": "x", "tenant": "nobodys"})
        assert answer.status_code == 200
        assert "No tenant has the slug nobodys." in answer.content.decode()

    def test_list_no_tenants_of_which_there_may_be_very_many(self, admin_client, alice):
        assert alice.tenant.slug not in admin_client.get(self.FIGURES).content.decode()

    def test_are_for_staff_only(self, client):
        assert client.get(self.FIGURES).status_code == 302

    def test_are_linked_from_the_calls(self, admin_client):
        assert self.FIGURES in page(admin_client).content.decode()
