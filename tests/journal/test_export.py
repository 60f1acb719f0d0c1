"""GET /api/v1/calls.csv and /calls.jsonl."""

import asyncio
import csv
import io
import json
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from django.test import AsyncClient

from journal.export import COLUMNS, inert
from journal.models import Rating
from tests.journal.support import NOON, client_of

pytestmark = pytest.mark.django_db


def rows(person, **query):
    answer = client_of(person).get("/api/v1/calls.csv", query)
    assert answer.status_code == 200
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(io.StringIO(answer.getvalue().decode(), newline="")))


def lines(person, **query):
    answer = client_of(person).get("/api/v1/calls.jsonl", query)
    return [json.loads(line) for line in answer.getvalue().splitlines()]


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+1",
        "-2+3",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "\ttab",
        " =1+1",
        "＝1+1",
        '=HYPERLINK("http://x.test","k")',
    ],
)
def test_no_cell_is_a_formula(alice, journaled, text):
    journaled(alice, operation=text, error_detail=text, llm_name=text)
    (row,) = rows(alice)
    assert row["operation"] == row["error_detail"] == row["llm_name"] == f"'{text}"


def test_numbers_stay_numbers_and_dates_dates(alice, journaled):
    journaled(alice, cost_micros=-12, latency_ms=5, operation="2026-01-05")
    (row,) = rows(alice)
    assert (row["cost_micros"], row["latency_ms"]) == ("-12", "5")
    assert (row["operation"], row["ts"]) == ("2026-01-05", "2026-03-01T12:00:00+00:00")


def test_quotes_and_line_ends_come_through(alice, journaled):
    text = 'a,"b"\n=1'
    journaled(alice, error_detail=text)
    assert rows(alice)[0]["error_detail"] == text


@pytest.mark.parametrize("text", ["plain", "", "привет", "a=b", "1-2"])
def test_plain_text_is_left_alone(text):
    assert inert(text) == text


def test_both_forms_tell_the_same_columns_newest_first(alice, journaled):
    calls = [journaled(alice, NOON + timedelta(hours=hour), total_tokens=hour) for hour in range(3)]
    Rating.objects.create(
        call=calls[0], scope_id=alice.scope.id, tenant_id=alice.tenant.id, score=0.5
    )
    as_csv, as_json = rows(alice), lines(alice)
    assert [row["id"] for row in as_csv] == [str(call.id) for call in reversed(calls)]
    assert [row["id"] for row in as_json] == [row["id"] for row in as_csv]
    assert tuple(as_csv[0]) == tuple(as_json[0]) == COLUMNS
    assert [row["score"] for row in as_json] == [None, None, 0.5]
    assert [row["total_tokens"] for row in as_json] == [2, 1, 0]


def test_it_is_read_page_by_page(alice, journaled, monkeypatch):
    monkeypatch.setattr("journal.export.PAGE", 2)
    calls = [journaled(alice, NOON + timedelta(hours=hour)) for hour in range(5)]
    assert [row["id"] for row in lines(alice)] == [str(call.id) for call in reversed(calls)]


def test_the_filters_of_calls_apply(alice, journaled):
    journaled(alice, run="r1", step=1)
    journaled(alice, run="r2")
    assert [row["run"] for row in lines(alice, run="r1")] == ["r1"]
    assert lines(alice, until="2026-01-01") == []
    assert client_of(alice).get("/api/v1/calls.csv", {"limit": 5}).status_code == 400


def test_no_calls_are_a_header_or_nothing(alice):
    assert (
        client_of(alice).get("/api/v1/calls.csv").getvalue().decode() == ",".join(COLUMNS) + "\r\n"
    )
    assert lines(alice) == []


@pytest.mark.django_db(transaction=True)
def test_an_event_loop_serves_it_too(alice, journaled):
    call = journaled(alice)

    async def read():
        headers = {"Authorization": f"Bearer {alice.token}"}
        answer = await AsyncClient().get("/api/v1/calls.jsonl", headers=headers)
        lines = b"".join([piece async for piece in answer.streaming_content])
        await sync_to_async(connections.close_all)()  # of the view's thread; a server would
        return lines

    assert json.loads(asyncio.run(read()))["id"] == str(call.id)
