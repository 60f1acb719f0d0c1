"""kill -9 at random moments under load: what the model server saw has a row, and none twice.

Three rounds here; `DRILL_ROUNDS=10` for the long form.
"""

import os
import random
import sys
import time
from collections import Counter
from datetime import timedelta

import pytest
from django.utils import timezone

from journal.figures.sweeping import sweep
from journal.models import Call
from tests.support.caller import AT_ONCE
from tests.support.model_server import ModelServer, say
from tests.support.worker import Worker, services

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(600)]

ROUNDS = int(os.environ.get("DRILL_ROUNDS", "3"))
SEED = int(os.environ.get("DRILL_SEED", time.time_ns()))


def test_every_request_that_the_model_server_saw_has_one_row(alice, tmp_path):
    moments = random.Random(SEED)
    environment = {**os.environ, **services(), "JOURNAL_SPOOL_DIR": str(tmp_path)}
    with ModelServer() as server:
        server.answer_with(lambda request: say("yes").after(moments.uniform(0, 0.05)))
        command = [sys.executable, "-m", "tests.support.caller", server.base_url]
        for _ in range(ROUNDS):
            caller = Worker([*command, str(alice.scope.id)], environment)
            caller.wait_until_ready()
            time.sleep(moments.uniform(0.2, 1.5))
            caller.kill()
            caller.stop()
        seen = {request.messages[-1]["content"] for request in server.requests}

    assert len(seen) > ROUNDS * AT_ONCE, f"seed {SEED}"
    rows = Counter(Call.objects.values_list("trace_id", flat=True))
    assert seen <= set(rows), f"seed {SEED}: {len(seen - set(rows))} requests without a row"
    assert set(rows.values()) == {1}, f"seed {SEED}"

    sweep(now=timezone.now() + timedelta(hours=2))
    statuses = Counter(Call.objects.values_list("status", flat=True))
    assert set(statuses) <= {"ok", "unknown"}, f"seed {SEED}"
    assert statuses["unknown"] <= ROUNDS * AT_ONCE
    assert list(tmp_path.iterdir()) == []
