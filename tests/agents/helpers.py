"""What the tests of runs have in common beside fixtures."""

from datetime import timedelta

from django.utils import timezone

from agents.models import Run, Step
from agents.services.answering import Decision, decide
from agents.tool_registry import Tool, ToolRegistry
from llmbroker import Function
from tenants.caller import Caller
from tenants.encryption import Secret
from tenants.roles import ALL
from tenants.services.endpoints import add_endpoint
from tenants.services.keys import add_key

MODEL_KEY = "sk-marker-6d1f0c2b7a"
ANYTHING = {"type": "object", "properties": {}}


def caller_of(person):
    return Caller(person.tenant, person.scope, person.user, None, ALL)


def a_tool(name, function, **options):
    """A tool that takes whatever it is given."""
    return Function(function, **{"name": name, "effect": "pure", "parameters": ANYTHING, **options})


def registry(functions):
    """The registry of these functions, under their own names."""
    return ToolRegistry(map(Tool, functions))


class Models:
    """In a Broker's place: what ``chat`` says, asked for on the Broker's own event loop."""

    def __init__(self, broker, chat):
        self.run, self.chat = broker.run, chat
        self.asynchronous = self

    def for_scope(self, scope):
        return self


def worker_dies(run):
    """The lease of whoever worked on ``run`` runs out."""
    past = timezone.now() - timedelta(seconds=1)
    Run.objects.filter(id=run.id, lease_until__isnull=False).update(lease_until=past)


def has_model(person, server):
    """A model server is ``person``'s to call from now on."""
    values = {"name": "m", "base_url": server.base_url, "model": "m", "api_key_ref": "M_KEY"}
    add_endpoint(tenant=person.tenant, scope=None, values=values)
    add_key(scope=person.scope, ref="M_KEY", value=Secret("k"))


def settle_what_nobody_knows(decision="reject"):
    """A ``once`` tool whose worker died with it: somebody looks, and says to leave it.

    The ids of the runs that waited for that.
    """
    steps = list(Step.objects.filter(needs=Step.Needs.OUTCOME))
    for step in steps:
        given = Decision(tool_call_id=step.tool_call_id, decision=decision)
        decide(run_id=step.run_id, decisions=[given])
    return {step.run_id for step in steps}


def summary(run):
    """(kind, what, status) of each step."""
    return [(step.kind, step.name or step.llm_name, step.status) for step in run.steps.all()]
