"""The database goes away under a person who calls models through limits and with a budget.

Two seconds here; `AWAY_SECONDS=60` for the long form. `--log-cli-level=INFO` says how many calls
it saw.
"""

import logging
import os
import sys
import time
from collections import Counter
from decimal import Decimal

import pytest

from tenants.outage import LONGEST_PAUSE
from tests.support.model_server import ModelServer, say
from tests.support.tenant_caller import AT_ONCE
from tests.support.worker import Worker

log = logging.getLogger(__name__)

AWAY_SECONDS = float(os.environ.get("AWAY_SECONDS", "2"))

pytestmark = pytest.mark.timeout(180 + 3 * AWAY_SECONDS)


@pytest.fixture
def caller(up, tmp_path):
    with ModelServer() as model:
        model.answer_with(lambda request: say("yes").after(0.1))
        environment = {
            **up.environment,
            "BROKER_ALLOW_PRIVATE_ADDRESSES": "1",
            "JOURNAL_SPOOL_DIR": str(tmp_path),
        }
        command = [sys.executable, "-m", "tests.support.tenant_caller", model.base_url]
        caller = Worker(command, environment)
        caller.model = model
        try:
            caller.wait_until_ready()
            yield caller
        finally:
            caller.kill()
            caller.stop()


def said(caller, word):
    return [line.split(maxsplit=1)[1].strip() for line in caller.lines if line.startswith(word)]


def wait_for_more(caller, number, timeout=60):
    """Until ``number`` more calls have ended."""
    wanted = len(said(caller, "answered")) + len(said(caller, "failed")) + number
    deadline = time.monotonic() + timeout
    while len(said(caller, "answered")) + len(said(caller, "failed")) < wanted:
        assert time.monotonic() < deadline, caller.output
        time.sleep(0.05)


def test_no_answer_is_lost_and_no_row_lost_or_doubled_and_money_is_counted(up, caller, tmp_path):
    wait_for_more(caller, 2 * AT_ONCE)
    up.stop()
    before = len(said(caller, "answered"))
    time.sleep(AWAY_SECONDS)
    wait_for_more(caller, 2 * AT_ONCE)
    meanwhile = len(said(caller, "answered")) - before
    up.start()
    deadline = time.monotonic() + 60 + 2 * AWAY_SECONDS
    while list(tmp_path.iterdir()):
        assert time.monotonic() < deadline, "the spool was not written back"
        time.sleep(0.1)
    time.sleep(LONGEST_PAUSE)  # until what is owed is written too
    wait_for_more(caller, 10 * AT_ONCE)
    caller.process.stdin.close()
    caller.process.wait(60)
    caller.stop()

    assert said(caller, "failed") == []
    assert meanwhile >= 2 * AT_ONCE
    answered = said(caller, "answered")
    with up.connect() as connection:
        rows = connection.execute("SELECT trace_id, status FROM journal_call").fetchall()
    assert set(Counter(trace for trace, _ in rows).values()) == {1}
    assert {trace for trace, status in rows if status == "ok"} == set(answered)
    seen = {request.messages[-1]["content"] for request in caller.model.requests}
    assert seen == {trace for trace, _ in rows}
    assert Decimal(said(caller, "spent")[0]) == Decimal("0.01") * len(answered)
    log.info("away %.0f s: %d answers, %d meanwhile", AWAY_SECONDS, len(answered), meanwhile)
