"""Schedules."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from agents.models import Schedule
from agents.serializers.runs import RunInput
from tenants.serializers_base import StrictSerializer


class ScheduleInput(StrictSerializer):
    """A schedule to define, or what of it changes."""

    name = serializers.CharField(max_length=200)
    cron = serializers.CharField(max_length=200, help_text="For example: 0 9 * * 1-5")
    timezone = serializers.CharField(max_length=64, required=False, help_text="UTC if left out.")
    request = RunInput(help_text="The body of POST /runs.")
    enabled = serializers.BooleanField(required=False)
    allow_overlap = serializers.BooleanField(required=False)

    def validate_request(self, request: dict[str, Any]) -> dict[str, Any]:
        """Refuse a part of a request, also where the schedule itself is changed in part."""
        if "messages" not in request:
            raise serializers.ValidationError({"messages": "This field is required."})
        return request


@extend_schema_field(RunInput)
class StoredRequest(serializers.JSONField):
    """The body as it was given."""


class ScheduleOutput(serializers.ModelSerializer[Schedule]):
    """A schedule, with its next tick; ``last_problem`` says why the last one made no run."""

    object = serializers.CharField(default="schedule", read_only=True)
    request: Any = StoredRequest(read_only=True)

    class Meta:
        model = Schedule
        fields = (
            "id", "object", "name", "cron", "timezone", "request", "enabled", "allow_overlap",
            "next_run_at", "last_run_at", "last_problem", "created_at", "updated_at",
        )  # fmt: skip
        read_only_fields = fields
