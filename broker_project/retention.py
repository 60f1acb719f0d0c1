"""/api/v1/retention: how long a tenant keeps its runs and its calls.

Two apps that do not know each other keep the two, so it stands above both.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import transaction
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.selectors import run_retention_of
from agents.services.retention import keep_runs
from journal.selectors import policy_of
from journal.services import keep_calls
from tenants.caller import caller_of
from tenants.models import Tenant
from tenants.permissions import ADMIN
from tenants.serializers import validated
from tenants.serializers_base import StrictSerializer

MAX_DAYS = 36_500


def _days(help_text: str, *, allow_null: bool = True) -> serializers.IntegerField:
    return serializers.IntegerField(
        min_value=1,
        max_value=MAX_DAYS,
        required=False,
        allow_null=allow_null,
        help_text=help_text,
    )


class RunsKept(StrictSerializer):
    """Runs, with their steps, events and deliveries."""

    days = _days("Days from a run's end; null keeps them.")


class CallsKept(StrictSerializer):
    """Calls in the journal, and what they said where that is kept."""

    metadata_days = _days("Days from a call's start; null keeps them.")
    payload_days = _days("Days for messages and answers.", allow_null=False)
    keep_payloads = serializers.BooleanField(
        required=False, help_text="Keep messages and answers, under the tenant's own encryption."
    )


class RetentionInput(StrictSerializer):
    """What changes; null goes back to the installation's."""

    runs = RunsKept(required=False, allow_null=True)
    calls = CallsKept(required=False, allow_null=True)


class RetentionOutput(RetentionInput):
    """What holds for the tenant now, its own or the installation's."""

    object = serializers.CharField(default="retention", read_only=True)


class RetentionView(APIView):
    """How long the caller's tenant keeps what."""

    required_permissions: ClassVar = {"GET": ADMIN, "PATCH": ADMIN}

    @extend_schema(operation_id="retention_retrieve", responses=RetentionOutput)
    def get(self, request: Request) -> Response:
        """Show what holds."""
        return Response(_represent(caller_of(request).tenant))

    @extend_schema(
        operation_id="retention_update", request=RetentionInput, responses=RetentionOutput
    )
    def patch(self, request: Request) -> Response:
        """Change the tenant's own; what is too old then goes with the next daily deletion."""
        tenant = caller_of(request).tenant
        values = validated(RetentionInput, request)
        with transaction.atomic():
            if "runs" in values:
                keep_runs(tenant=tenant, values=values["runs"])
            if "calls" in values:
                keep_calls(tenant=tenant, values=values["calls"])
        return Response(_represent(tenant))


def _represent(tenant: Tenant) -> dict[str, Any]:
    runs, calls = run_retention_of(tenant), policy_of(tenant.pk)
    return {
        "object": "retention",
        "runs": {"days": runs.days},
        "calls": {
            "metadata_days": calls.metadata_days,
            "payload_days": calls.payload_days,
            "keep_payloads": calls.keep_payloads,
        },
    }
