"""Threads: conversations of several runs, one of which goes on at a time."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import IntegrityError, connection, transaction

from agents.models import Run, Thread
from agents.services.cancelling import cancel_run
from agents.services.threads import start_held
from agents.tasks import reap
from tenants.context import all_tenants
from tests.support.model_server import say

pytestmark = pytest.mark.django_db

PATH = "/api/v1/threads"


@pytest.fixture
def client(api, alice):
    return api(alice.token)


@pytest.fixture
def thread(client):
    return client.post(PATH, {"messages": [user("I am Alisher.")], "metadata": {"k": "v"}}).json()


def user(text):
    return {"role": "user", "content": text}


def said(client, thread):
    page = client.get(f"{PATH}/{thread['id']}/messages").json()["data"]
    return [(each["message"]["role"], each["message"]["content"]) for each in page]


def ask_in(client, thread, text, **values):
    return client.post(f"{PATH}/{thread['id']}/runs", {"messages": [user(text)], **values})


def test_a_run_reads_its_thread_and_answers_into_it(client, thread, model, advance):
    model.script(say("Hello Alisher."), say("Alisher."))
    first = ask_in(client, thread, "Hi!").json()
    assert first["thread_id"] == thread["id"]
    advance(Run.objects.get(id=first["id"]))
    second = ask_in(client, thread, "Who am I?").json()
    advance(Run.objects.get(id=second["id"]))
    conversation = [
        ("user", "I am Alisher."),
        ("user", "Hi!"),
        ("assistant", "Hello Alisher."),
        ("user", "Who am I?"),
        ("assistant", "Alisher."),
    ]
    assert said(client, thread) == conversation
    sent = [(each["role"], each["content"]) for each in model.requests[1].messages]
    assert sent == conversation[:-1]


def test_while_a_run_is_going_another_is_refused(client, thread):
    ask_in(client, thread, "Hi!")
    answer = ask_in(client, thread, "Hi again!")
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "thread_busy")
    assert said(client, thread) == [("user", "I am Alisher."), ("user", "Hi!")]
    assert client.delete(f"{PATH}/{thread['id']}").status_code == 409


def test_an_enqueued_run_waits_and_then_reads_what_was_said_before_it(
    client, thread, model, advance
):
    model.script(say("One."), say("Two."))
    first, second = (
        Run.objects.get(id=ask_in(client, thread, text, multitask_strategy=how).json()["id"])
        for text, how in (("First?", "reject"), ("Second?", "enqueue"))
    )
    assert advance(second).status == "queued"  # a ring too many changes nothing
    assert advance(first).status == "completed"
    assert said(client, thread)[-2:] == [("assistant", "One."), ("user", "Second?")]
    assert advance(second).status == "completed"
    assert [each["content"] for each in model.requests[1].messages][-3:] == [
        "First?",
        "One.",
        "Second?",
    ]


def test_an_interrupting_run_cancels_those_before_it(client, thread, model, advance):
    model.script(say("At once."))
    before = [ask_in(client, thread, "a").json(), ask_in(client, thread, "b").json()]
    assert "id" not in before[1]
    waiting = ask_in(client, thread, "b", multitask_strategy="enqueue").json()
    last = ask_in(client, thread, "c", multitask_strategy="interrupt").json()
    for each in (before[0], waiting):
        assert client.get(f"/api/v1/runs/{each['id']}").json()["status"] == "cancelled"
    assert advance(Run.objects.get(id=last["id"])).status == "completed"


def test_an_interrupting_run_waits_for_what_is_in_flight(client, thread):
    first = Run.objects.get(id=ask_in(client, thread, "a").json()["id"])
    Run.objects.filter(id=first.id).update(status="in_progress")
    last = Run.objects.get(
        id=ask_in(client, thread, "b", multitask_strategy="interrupt").json()["id"]
    )
    assert Run.objects.get(id=first.id).status == "cancelling"
    assert last.history_index is not None


def test_a_cancelled_run_that_waited_is_passed_over(client, thread, model, advance):
    model.script(say("One."))
    first, second, third = (
        Run.objects.get(id=ask_in(client, thread, "x", multitask_strategy="enqueue").json()["id"])
        for _ in range(3)
    )
    cancel_run(run_id=second.id)
    advance(first)
    waits = Run.objects.in_bulk([second.id, third.id])
    assert waits[second.id].status == "cancelled"
    assert waits[third.id].history_index is None


@pytest.mark.django_db(transaction=True)
def test_a_run_that_was_passed_over_in_its_thread_is_started_by_the_beat(
    client, thread, model, advance
):
    """Whoever ends the first run finds the second one locked, by a cancellation that then fails."""
    model.script(say("One."), say("Two."))
    first, second = (
        Run.objects.get(id=ask_in(client, thread, "x", multitask_strategy="enqueue").json()["id"])
        for _ in range(2)
    )
    is_locked, may_end = threading.Event(), threading.Event()

    def cancel_in_vain():
        try:
            with all_tenants("tests", routine=True), transaction.atomic():
                Run.objects.select_for_update().get(id=second.id)
                is_locked.set()
                may_end.wait(20)
                transaction.set_rollback(True)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        rival = pool.submit(cancel_in_vain)
        assert is_locked.wait(20)
        assert advance(first).status == "completed"
        assert start_held() == 1, "it is still locked, and nobody waits for that"
        may_end.set()
        rival.result()
    assert Run.objects.get(id=second.id).history_index is not None, (
        "it is held, and nothing is going"
    )
    reap()
    assert advance(second).output_text == "Two."
    assert model.requests[1].messages[-2:] == [
        {"role": "assistant", "content": "One."},
        user("x"),
    ]


def test_the_beat_starts_nothing_where_a_run_is_going(client, thread):
    for _ in range(2):
        ask_in(client, thread, "x", multitask_strategy="enqueue")
    assert start_held() == 0


def test_the_database_allows_one_active_run_per_thread(alice, thread):
    values = {
        "tenant": alice.tenant,
        "scope": alice.scope,
        "thread_id": thread["id"],
        "messages": [],
        "trace_id": "t",
    }
    Run.objects.create(**values)
    with pytest.raises(IntegrityError, match="one_active"), transaction.atomic():
        Run.objects.create(**values)


@pytest.mark.django_db(transaction=True)
def test_of_many_requests_at_once_one_goes_and_the_others_are_refused(api, alice, client, thread):
    together = threading.Barrier(6)

    def one(number):
        together.wait()
        try:
            return ask_in(api(alice.token), thread, str(number)).status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(one, range(6))) == [202] + [409] * 5
    assert Thread.objects.get().messages.count() == 2


@pytest.mark.django_db(transaction=True)
def test_runs_that_interrupt_each_other_at_once_leave_one_that_goes_on(api, alice, client, thread):
    together = threading.Barrier(6)

    def one(number):
        together.wait()
        try:
            asked = {"text": f"{number}", "multitask_strategy": "interrupt"}
            own = api(alice.token)
            return {ask_in(own, thread, **asked).status_code for _ in range(3)}
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(one, range(6))) == [{202}] * 6
    going = Run.objects.filter(status="queued")
    assert going.filter(history_index=None).count() == 1
    for run in going.order_by("history_index"):
        cancel_run(run_id=run.id)
    assert not Run.objects.exclude(status="cancelled").exists()


def test_a_thread_is_its_scopes_alone(client, thread, api, bob, charlie):
    for token in (bob.token, charlie.token):
        assert api(token).get(f"{PATH}/{thread['id']}").status_code == 404
        assert ask_in(api(token), thread, "hi").status_code == 404
        assert api(token).get(PATH).json()["data"] == []


def test_a_thread_is_deleted_and_its_runs_stay(client, thread):
    run = ask_in(client, thread, "a").json()
    client.post(f"/api/v1/runs/{run['id']}/cancel")
    assert client.delete(f"{PATH}/{thread['id']}").status_code == 204
    assert client.get(f"/api/v1/runs/{run['id']}").json()["thread_id"] is None
