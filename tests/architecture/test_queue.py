"""Celery is a doorbell (docs/architecture.md): nothing is asked of it that gets lost with it."""

from __future__ import annotations

import ast

from tests.architecture.test_imports import GRAPH, modules

# A delay would be redelivered, a revoke forgotten, a limit ignored by threads; and a worker's
# child that is ended for one run's sake takes its neighbours along.
NEVER_GIVEN = {"countdown", "eta", "time_limit", "soft_time_limit", "terminate", "max_retries"}
NEVER_CALLED = {"apply_async", "AsyncResult", "revoke", "retry"}


def test_no_delay_limit_retry_or_revoke_is_left_to_celery() -> None:
    found = []
    for name, tree in modules():
        if not any(each.startswith(("celery", "kombu")) for each in GRAPH[name]):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.keyword) and node.arg in NEVER_GIVEN:
                found.append(f"{name} gives {node.arg}")
            if isinstance(node, ast.Attribute) and node.attr in NEVER_CALLED:
                found.append(f"{name} calls {node.attr}")
    assert found == []
