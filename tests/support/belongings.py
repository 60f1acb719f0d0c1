"""One of everything that a tenant can have, for those who try to get at it."""

import json
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from django.apps import apps
from django.db import connection
from django.utils import timezone

from agents.models import (
    Agent,
    AgentVersion,
    Event,
    HttpTool,
    McpServer,
    PromptFunction,
    PromptVersion,
    Run,
    RunRetention,
    Schedule,
    Step,
    Thread,
    ThreadMessage,
    WebhookDelivery,
    WebhookEndpoint,
)
from journal.models import Call, DailyFigures, Payload, Rating, RetentionPolicy, StaleDay
from tenants.encryption import Secret
from tenants.models import AuditEntry, IdempotentRequest, Limit, Reservation, Spending
from tenants.services.endpoints import add_endpoint
from tenants.services.keys import add_key
from tenants.services.tokens import create_token

OUR_APPS = ("tenants", "journal", "agents")
INSTALLATIONS_OWN = {
    "tenants.EncryptionKey": "check values of the installation's keys, no tenant",
    "journal.Progress": "how far the figures of all have come, no tenant",
}


def tenant_models():
    """Every model of ours that holds what is a tenant's."""
    return [
        model
        for app in OUR_APPS
        for model in apps.get_app_config(app).get_models()
        if model._meta.label not in INSTALLATIONS_OWN
    ]


@dataclass
class Belongings:
    """Rows by the name that routes give their ids."""

    person: object
    ids: dict = field(default_factory=dict)

    def all_ids(self):
        return {str(pk) for pks in self.ids.values() for pk in pks if isinstance(pk, UUID)}


def belongings_of(person):
    tenant, scope = person.tenant, person.scope
    key = add_key(scope=scope, ref="A_KEY", value=Secret("acme-secret-key-value"))
    shared = add_key(scope=person.shared, ref="A_KEY", value=Secret("acme-shared-key-value"))
    token = create_token(scope=scope, name="t", permissions=["runs:read"], created_by=person.user)
    values = {"base_url": "https://api.example.test/v1", "model": "m", "api_key_ref": "A_KEY"}
    endpoint = add_endpoint(tenant=tenant, scope=None, values={"name": "all", **values})
    call = Call.objects.create(
        tenant_id=tenant.pk, scope_id=scope.pk, llm_name="m", ts=timezone.now(), status="ok"
    )
    rating = Rating.objects.create(
        call=call, tenant_id=tenant.pk, scope_id=scope.pk, score=0.5, created_by=person.user
    )
    payload = Payload.objects.create(
        id=call.pk,
        tenant_id=tenant.pk,
        scope_id=scope.pk,
        data_key_id=key.data_key_id,
        sealed=b"sealed",
    )
    policy = RetentionPolicy.objects.create(tenant_id=tenant.pk, metadata_days=90)
    days = {"tenant_id": tenant.pk, "scope_id": scope.pk, "day": timezone.now().date()}
    stale = StaleDay.objects.create(**days)
    figures = DailyFigures.objects.create(**days, cells=[])
    agent = Agent.objects.create(tenant=tenant, slug="theirs", name="theirs")
    agent_version = AgentVersion.objects.create(
        agent=agent, number=1, max_steps=8, prefer="quality"
    )
    thread = Thread.objects.create(tenant=tenant, scope=scope)
    message = ThreadMessage.objects.create(thread=thread, number=1, message={"role": "user"})
    request = {"messages": [{"role": "user", "content": "hi"}]}
    schedule = Schedule.objects.create(
        tenant=tenant, scope=scope, name="s", cron="0 0 1 1 *", request=request, enabled=False
    )
    repeated = IdempotentRequest.objects.create(
        tenant=tenant,
        scope=scope,
        key="k",
        fingerprint=b"f",
        expires_at=timezone.now() + timedelta(hours=1),
    )
    kept = RunRetention.objects.create(tenant=tenant, days=90)
    prompt = PromptFunction.objects.create(tenant=tenant, slug=f"prompt-{tenant.pk.hex[-8:]}")
    version = PromptVersion.objects.create(prompt=prompt, number=1, template="hi")
    tool = HttpTool.objects.create(
        tenant=tenant, slug="own-tool", url="https://tools.example.test/", parameters={}
    )
    server = McpServer.objects.create(
        tenant=tenant, plugin="theirs", url="https://mcp.example.test/"
    )
    run = Run.objects.create(tenant=tenant, scope=scope, agent=agent, messages=[], trace_id="t")
    step = Step.objects.create(run=run, number=1, kind="model_call", status="queued")
    event = Event.objects.create(run=run, sequence_number=1, type="run.queued")
    webhook = WebhookEndpoint.objects.create(tenant=tenant, url="https://hooks.example.test/")
    delivery = WebhookDelivery.objects.create(
        tenant=tenant, endpoint=webhook, event=event, next_attempt_at=timezone.now()
    )
    limit = Limit.objects.create(tenant=tenant, kind="usd_per_day", value=5)
    spending = Spending.objects.create(tenant=tenant, limit=limit, period=timezone.now().date())
    reservation = Reservation.objects.create(
        tenant=tenant,
        spending=spending,
        call_id=call.pk,
        amount=1,
        expires_at=timezone.now() + timedelta(hours=1),
    )
    return Belongings(
        person,
        {
            "tenant_id": [tenant.pk],
            "scope_id": [scope.pk, person.shared.pk],
            "membership_id": [m.pk for m in tenant.memberships.all()],
            "data_key_id": [key.data_key_id],
            "key_id": [key.pk, shared.pk],
            "token_id": [token.row.pk],
            "endpoint_id": [endpoint.pk],
            "call_id": [call.pk],
            "payload_id": [payload.pk],
            "policy_id": [policy.pk],
            "stale_day_id": [stale.pk],
            "figures_id": [figures.pk],
            "rating_id": [rating.pk],
            "agent_id": [agent.pk],
            "agent_version_id": [agent_version.pk],
            "thread_id": [thread.pk],
            "message_id": [message.pk],
            "schedule_id": [schedule.pk],
            "run_retention_id": [kept.pk],
            "idempotent_request_id": [repeated.pk],
            "prompt_id": [prompt.pk],
            "version_id": [version.pk],
            "limit_id": [limit.pk],
            "spending_id": [spending.pk],
            "reservation_id": [reservation.pk],
            "audit_id": [each.pk for each in AuditEntry.objects.filter(tenant_id=tenant.pk)],
            "tool_id": [tool.pk],
            "server_id": [server.pk],
            "slug": [prompt.slug],
            "number": [version.number],
            "run_id": [run.pk],
            "step_id": [step.pk],
            "event_id": [event.pk],
            "webhook_id": [webhook.pk],
            "delivery_id": [delivery.pk],
        },
    )


def snapshot(*, but=()):
    """Every column of every row of every tenant's table, but when it was last used."""
    found = {}
    with connection.cursor() as cursor:
        for model in tenant_models():
            table = model._meta.db_table
            cursor.execute(
                f"SELECT to_jsonb(t) - 'last_used_at' FROM {table} t ORDER BY id"  # noqa: S608
            )
            found[table] = [json.loads(row) for (row,) in cursor.fetchall()]
    return {table: rows for table, rows in found.items() if table not in but}
