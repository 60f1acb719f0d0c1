"""`manage.py run_agent`: a run from the terminal, outside of all scopes, beside a worker."""

import threading
import time
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from agents.models import Agent, Run
from agents.services.agent_versions import note_version
from agents.services.cancelling import cancel_run
from tenants.context import all_tenants, scope_active
from tests.support.model_server import ask, say, tell

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def agent(alice):
    agent = Agent.objects.create(
        tenant=alice.tenant, slug="helper", name="Helper", tools=["calculate"]
    )
    note_version(agent)
    return agent


@pytest.fixture
def beside():
    """``beside(work)``: do ``work`` with the run that appears, in another thread."""
    threads = []

    def beside(work):
        def once_there():
            try:
                with all_tenants("tests", routine=True):
                    deadline = time.monotonic() + 20
                    while not (run := Run.objects.first()) and time.monotonic() < deadline:
                        time.sleep(0.02)
                    work(run)
            finally:
                connection.close()

        threads.append(threading.Thread(target=once_there))
        threads[-1].start()

    yield beside
    for thread in threads:
        thread.join(30)


def run_agent(*arguments):
    out, err = StringIO(), StringIO()
    with scope_active(None), pytest.raises(SystemExit) as ended:
        call_command("run_agent", *arguments, stdout=out, stderr=err)
    return ended.value.code, out.getvalue(), err.getvalue()


def test_a_run_is_shown_while_it_goes_and_its_answer_at_the_end(
    agent, alice, model, beside, advance
):
    model.script(ask(("calculate", {"expression": "30 * 1.8 + 32"})), say("86 °F"))
    beside(advance)
    code, out, err = run_agent("helper", "How warm is 30 °C?", "--user", alice.user.email)
    assert code == 0
    lines = [line.strip() for line in out.splitlines()]
    assert lines[-4:] == [
        "1 tested asks for calculate",
        "2 calculate → 86",
        "3 tested answers",
        "86 °F",
    ]
    assert "completed, 30 tokens" in err


class Terminal(StringIO):
    def isatty(self):
        return True


def test_somebody_at_a_terminal_sees_what_the_model_says_while_it_says_it(
    agent, alice, model, beside, advance
):
    gate, out = threading.Event(), Terminal()
    model.script(tell("Toshkent, ", "30 °C").behind(gate))
    beside(advance)
    beside(lambda _: seen(out, "Toshkent, ") and gate.set())
    with scope_active(None), pytest.raises(SystemExit):
        call_command(
            "run_agent", "helper", "x", "--user", alice.user.email, stdout=out, stderr=StringIO()
        )
    assert out.getvalue().splitlines()[-2:] == ["Toshkent, 30 °C", "  1 tested answers"]


def seen(out, text):
    deadline = time.monotonic() + 20
    while text not in out.getvalue() and time.monotonic() < deadline:
        time.sleep(0.02)
    return text in out.getvalue()


def test_the_exit_status_tells_how_it_ended(agent, alice, beside):
    beside(lambda run: cancel_run(run_id=run.id))
    code, _, err = run_agent("helper", "x", "--user", alice.user.email, "--tenant", "acme")
    assert (code, "cancelled" in err) == (3, True)


@pytest.mark.parametrize(
    "arguments",
    [
        ("no-such", "x", "--user", "alice@acme.example"),
        ("helper", "x", "--user", "nobody@acme.example"),
        ("helper", "x", "--user", "alice@acme.example", "--tenant", "globex"),
    ],
)
def test_what_is_not_there_is_said(agent, charlie, arguments):
    with scope_active(None), pytest.raises(CommandError):
        call_command("run_agent", *arguments, stdout=StringIO(), stderr=StringIO())
