"""Runs on a real database, a real engine and a model server over HTTP."""

from datetime import timedelta

import pytest
from django.utils import timezone

from agents.models import Run
from agents.native_tools import TOOLS
from agents.services.advance import advance_run
from agents.services.creation import create_run
from agents.tool_registry import ToolRegistry
from llmbroker import Broker, Function, InMemoryRegistry, InMemoryStore, LLMConfig
from tenants.caller import Caller
from tenants.roles import ALL
from tests.support.model_server import ModelServer

MODEL_KEY = "sk-marker-6d1f0c2b7a"
ANYTHING = {"type": "object", "properties": {}}


@pytest.fixture
def model():
    with ModelServer() as server:
        yield server


@pytest.fixture
def broker(model):
    config = LLMConfig("tested", model.base_url, "test-model", "MODEL_KEY")
    with Broker(
        InMemoryRegistry([config]), secrets={"MODEL_KEY": MODEL_KEY}, store=InMemoryStore()
    ) as broker:
        yield broker


def caller_of(person, permissions=ALL):
    return Caller(person.tenant, person.scope, person.user, None, frozenset(permissions))


def a_tool(name, function, **options):
    """A tool that takes whatever it is given."""
    return Function(function, **{"name": name, "effect": "pure", "parameters": ANYTHING, **options})


@pytest.fixture
def native():
    return ToolRegistry(TOOLS)


@pytest.fixture
def start(alice, native):
    """``start("question", tools=[…])``: a run of alice's, queued."""

    def start(question="What day is it?", *, available=native, person=alice, **values):
        values.setdefault("messages", [{"role": "user", "content": question}])
        return create_run(caller=caller_of(person), available=available, **values).run

    return start


@pytest.fixture
def advance(broker, native):
    """``advance(run)``: what a worker does when the bell rings; returns the run as it is then."""

    def advance(run, *, tools=native, broker=broker):
        advance_run(run_id=run.id, broker=broker, tools=tools)
        return Run.objects.get(id=run.id)

    return advance


@pytest.fixture
def complete(start, advance):
    """``complete("question", tools={name: function})``: the run after a worker's work."""

    def complete(question="What day is it?", *, tools=(), **values):
        registry = ToolRegistry(tools)
        run = start(question, available=registry, tools=list(registry), **values)
        return advance(run, tools=registry)

    return complete


def worker_dies(run):
    """The lease of whoever worked on ``run`` runs out."""
    past = timezone.now() - timedelta(seconds=1)
    Run.objects.filter(id=run.id, lease_until__isnull=False).update(lease_until=past)


def summary(run):
    """(kind, what, status) of each step."""
    return [(step.kind, step.name or step.llm_name, step.status) for step in run.steps.all()]
