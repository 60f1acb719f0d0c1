"""Runs on a real database, a real engine and a model server over HTTP."""

import pytest
from django.db import connections

from agents.models import Run
from agents.native_tools import TOOLS
from agents.services.creation import RunRequest, create_run
from agents.services.ledger import Ledger
from agents.services.worker import advance_run
from llmbroker import Broker, InMemoryRegistry, InMemoryStore, LLMConfig
from tests.agents.helpers import MODEL_KEY, caller_of, registry
from tests.support.model_server import ModelServer


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


@pytest.fixture
def native():
    return registry(TOOLS)


@pytest.fixture
def start(alice, native):
    """``start("question", tools=[…])``: a run of alice's, queued."""

    def start(question="What day is it?", *, available=native, idempotency_key=None, **values):
        request = RunRequest(messages=[{"role": "user", "content": question}], **values)
        return create_run(
            caller=caller_of(alice),
            request=request,
            available=available,
            idempotency_key=idempotency_key,
        ).run

    return start


@pytest.fixture
def ledger(db):
    """A worker's, which shares this test's transaction if there is one."""
    lent = connections["default"]
    if not lent.in_atomic_block:
        with Ledger() as ledger:
            yield ledger
        return
    lent.inc_thread_sharing()
    with Ledger(lent=lent) as ledger:
        yield ledger
    lent.dec_thread_sharing()


@pytest.fixture
def advance(broker, native, ledger):
    """``advance(run)``: what a worker does with a run; returns the run as it is then."""

    def advance(run, *, tools=native, tools_of=None, broker=broker):
        of_run = (lambda run: tools_of(run, broker)) if tools_of else (lambda _: tools)
        advance_run(run_id=run.id, broker=broker, tools=of_run, ledger=ledger)
        return Run.objects.get(id=run.id)

    return advance


@pytest.fixture
def complete(start, advance):
    """``complete("question", tools=[…])``: the run after a worker's work."""

    def complete(question="What day is it?", *, tools=(), **values):
        available = registry(tools)
        run = start(question, available=available, tools=list(available), **values)
        return advance(run, tools=available)

    return complete
