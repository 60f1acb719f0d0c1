"""For whoever runs this: is the process alive, can it work, and what has it counted."""

import hmac
import os
from collections.abc import Callable
from contextlib import closing

import redis
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from journal.connections import connect
from journal.telemetry import REGISTRY

PATIENCE = 2


def healthz(request: HttpRequest) -> HttpResponse:  # noqa: ARG001 - a view
    """The process answers. Asks nobody else: a restart would not bring the database back."""
    return JsonResponse({"status": "ok"})


def readyz(request: HttpRequest) -> HttpResponse:  # noqa: ARG001 - a view
    """Whether requests should come here: the database and Redis answer."""
    checks = {"database": _answers(_ask_database), "redis": _answers(_ask_redis)}
    ready = all(checks.values())
    told = {name: "ok" if answers else "away" for name, answers in checks.items()}
    body = {"status": "ok" if ready else "away", **told}
    return JsonResponse(body, status=200 if ready else 503)


def metrics(request: HttpRequest) -> HttpResponse:
    """What Prometheus reads; for the bearer of METRICS_TOKEN only, and hidden without one."""
    given = request.headers.get("Authorization", "").removeprefix("Bearer ")
    wanted = settings.METRICS_TOKEN
    if not wanted or not hmac.compare_digest(given.encode(), wanted.encode()):
        raise Http404
    return HttpResponse(generate_latest(_registry()), content_type=CONTENT_TYPE_LATEST)


def _registry() -> CollectorRegistry:
    """Of this process, or of all that share PROMETHEUS_MULTIPROC_DIR."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return REGISTRY
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return registry


def _answers(ask: Callable[[], object]) -> bool:
    try:
        ask()
    except Exception:  # noqa: BLE001 - whatever it is, the answer is no
        return False
    return True


def _ask_database() -> None:
    with closing(connect()) as connection:
        connection.execute("SELECT 1")


def _ask_redis() -> None:
    with closing(
        redis.Redis.from_url(
            settings.REDIS_URL, socket_timeout=PATIENCE, socket_connect_timeout=PATIENCE
        )
    ) as client:
        client.ping()
