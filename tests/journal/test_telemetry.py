"""What watchers are told of attempts."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import REGISTRY

from journal import telemetry
from llmbroker.models import Call, CallStatus, KeySource, Usage

CALL = Call(
    id="c1",
    llm_name="acme/small",
    operation="chat",
    trace_id="t1",
    status=CallStatus.OK,
    ts=datetime(2026, 3, 1, 12, tzinfo=UTC),
    base_url="https://api.provider.example/v1",
    model="small-1",
    model_answered="small-1-2026",
    provider_id="chatcmpl-1",
    key_source=KeySource.OWN,
    http_status=200,
    latency_ms=1500,
    usage=Usage(10, 5, 15),
    cost_micros=250,
    run="r1",
    step=2,
)
FAILED = replace(CALL, status=CallStatus.RATE_LIMITED, error_class="rate_limited", usage=None)


@pytest.fixture
def spans():
    exporter = InMemorySpanExporter()
    trace.get_tracer_provider().add_span_processor(SimpleSpanProcessor(exporter))
    return exporter


@pytest.fixture(scope="module", autouse=True)
def reader():
    reader = InMemoryMetricReader()
    trace.set_tracer_provider(TracerProvider())
    metrics.set_meter_provider(MeterProvider([reader]))
    telemetry._opentelemetry.cache_clear()
    yield reader
    telemetry._opentelemetry.cache_clear()


def counted(name, **labels):
    return REGISTRY.get_sample_value(name, labels) or 0


def test_a_span_has_the_times_and_the_facts_of_its_attempt(spans):
    telemetry.observe(CALL)
    (span,) = spans.get_finished_spans()
    assert (span.name, span.kind) == ("chat small-1", trace.SpanKind.CLIENT)
    assert span.end_time - span.start_time == 1_500_000_000
    assert span.attributes["gen_ai.provider.name"] == "api.provider.example"
    assert span.attributes["gen_ai.response.model"] == "small-1-2026"
    assert span.attributes["gen_ai.usage.input_tokens"] == 10
    assert span.attributes["llmbroker.run"] == "r1"
    assert span.status.is_ok or span.status.is_unset
    assert "error.type" not in span.attributes


def test_a_span_lies_within_its_callers(spans):
    with trace.get_tracer("test").start_as_current_span("request") as outer:
        telemetry.observe(CALL)
    inner = spans.get_finished_spans()[0]
    assert inner.parent.span_id == outer.get_span_context().span_id


def test_a_failed_attempt_says_why(spans):
    telemetry.observe(FAILED)
    (span,) = spans.get_finished_spans()
    assert span.attributes["error.type"] == "rate_limited"
    assert not span.status.is_ok
    assert "gen_ai.usage.input_tokens" not in span.attributes


def test_the_conventions_metrics_are_told(reader):
    telemetry.observe(CALL)
    (scope,) = reader.get_metrics_data().resource_metrics[0].scope_metrics
    assert {metric.name: metric.unit for metric in scope.metrics} == {
        "gen_ai.client.operation.duration": "s",
        "gen_ai.client.token.usage": "{token}",
    }


def test_prometheus_counts_attempts_time_tokens_and_cost():
    attempts = {"model": "acme/small", "status": "ok", "payer": "own"}
    of_model = {"model": "acme/small"}
    before = counted("llmbroker_attempts_total", **attempts)
    tokens = counted("llmbroker_tokens_total", type="input", **of_model)
    cost = counted("llmbroker_cost_dollars_total", **of_model)
    telemetry.observe(CALL)
    assert counted("llmbroker_attempts_total", **attempts) == before + 1
    assert counted("llmbroker_tokens_total", type="input", **of_model) == tokens + 10
    assert counted("llmbroker_cost_dollars_total", **of_model) == pytest.approx(cost + 0.00025)
    assert counted("llmbroker_attempt_seconds_count", **of_model) >= 1


def test_without_opentelemetry_prometheus_is_told_all_the_same(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    telemetry._opentelemetry.cache_clear()
    before = counted("llmbroker_attempts_total", model="acme/small", status="ok", payer="own")
    telemetry.observe(CALL)
    after = counted("llmbroker_attempts_total", model="acme/small", status="ok", payer="own")
    assert after == before + 1
    telemetry._opentelemetry.cache_clear()
