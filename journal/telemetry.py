"""Each attempt told to whoever watches: Prometheus, and OpenTelemetry where it is installed.

Names are those of OpenTelemetry's conventions for generative AI. A span is made when its
attempt is over, of the times in the journal, within the span that its caller is in. No label
names a tenant: the journal does that, and a metric for each would have no end.
"""

import functools
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from prometheus_client import REGISTRY, Counter, Histogram

from llmbroker.models import Call, CallStatus, Usage

__all__ = ["REGISTRY", "attributes_of", "observe"]

SECONDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320)

ATTEMPTS = Counter("llmbroker_attempts", "Attempts at a provider.", ["model", "status", "payer"])
DURATION = Histogram(
    "llmbroker_attempt_seconds", "How long attempts took.", ["model"], buckets=SECONDS
)
TOKENS = Counter("llmbroker_tokens", "Tokens, as providers count them.", ["model", "type"])
COST = Counter("llmbroker_cost_dollars", "Cost in US dollars, where it is known.", ["model"])

log = logging.getLogger(__name__)

PLAIN_ENDS = {CallStatus.OK, CallStatus.SUPERSEDED}


def observe(call: Call) -> None:
    """Tell of an attempt that is over. A watcher's fault is never the call's."""
    try:
        _count(call)
        tell = _opentelemetry()
        if tell is not None:
            tell(call)
    except Exception:
        log.exception("telemetry of call %s failed", call.id)


def _count(call: Call) -> None:
    payer = call.key_source.value if call.key_source else "none"
    status = call.status.value if call.status else CallStatus.UNKNOWN.value
    ATTEMPTS.labels(call.llm_name, status, payer).inc()
    if call.latency_ms is not None:
        DURATION.labels(call.llm_name).observe(call.latency_ms / 1000)
    for kind, tokens in _tokens(call).items():
        TOKENS.labels(call.llm_name, kind).inc(tokens)
    if call.cost_micros:
        COST.labels(call.llm_name).inc(call.cost_micros / 1_000_000)


def _tokens(call: Call) -> dict[str, int]:
    usage = call.usage or Usage()
    counted = {"input": usage.prompt_tokens, "output": usage.completion_tokens}
    return {kind: tokens for kind, tokens in counted.items() if isinstance(tokens, int)}


def attributes_of(call: Call) -> dict[str, Any]:
    """What the conventions call the facts of an attempt; unknown ones are left out."""
    usage = call.usage or Usage()
    host = urlsplit(call.base_url or "").hostname
    named = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": host,
        "gen_ai.request.model": call.model or call.llm_name,
        "gen_ai.response.model": call.model_answered,
        "gen_ai.response.id": call.provider_id,
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.completion_tokens,
        "server.address": host,
        "http.response.status_code": call.http_status,
        "error.type": None if call.status in PLAIN_ENDS else _cause(call),
        "llmbroker.call_id": call.id,
        "llmbroker.operation": call.operation,
        "llmbroker.trace_id": call.trace_id,
        "llmbroker.run": call.run,
        "llmbroker.step": call.step,
    }
    return {name: value for name, value in named.items() if value is not None}


def _cause(call: Call) -> str:
    return call.error_class or (call.status or CallStatus.UNKNOWN).value


@functools.cache
def _opentelemetry() -> Callable[[Call], None] | None:
    """Tells OpenTelemetry; None where it is not installed."""
    try:
        from opentelemetry import metrics, trace  # noqa: PLC0415
    except ImportError:
        return None
    tracer = trace.get_tracer("llmbroker")
    meter = metrics.get_meter("llmbroker")
    duration = meter.create_histogram("gen_ai.client.operation.duration", unit="s")
    tokens = meter.create_histogram("gen_ai.client.token.usage", unit="{token}")

    def tell(call: Call) -> None:
        facts = attributes_of(call)
        common = {name: facts[name] for name in facts if name in _OF_METRICS}
        for kind, number in _tokens(call).items():
            tokens.record(number, {**common, "gen_ai.token.type": kind})
        duration.record((call.latency_ms or 0) / 1000, common)
        if call.ts is None:
            return
        span = tracer.start_span(
            f"chat {facts['gen_ai.request.model']}",
            kind=trace.SpanKind.CLIENT,
            attributes=facts,
            start_time=_nanoseconds(call.ts.timestamp()),
        )
        if "error.type" in facts:
            span.set_status(trace.StatusCode.ERROR, facts["error.type"])
        ended = call.ts + timedelta(milliseconds=call.latency_ms or 0)
        span.end(end_time=_nanoseconds(ended.timestamp()))

    return tell


_OF_METRICS = frozenset(
    {
        "gen_ai.operation.name",
        "gen_ai.provider.name",
        "gen_ai.request.model",
        "gen_ai.response.model",
        "server.address",
        "error.type",
    }
)


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1_000_000) * 1000
