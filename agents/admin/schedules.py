"""Schedules of all tenants, and how long runs are kept."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils import timezone

from agents.models import RunRetention, Schedule
from agents.services.retention import keep_runs
from agents.services.schedules import delete_schedule, update_schedule
from tenants.admin.base import ServiceAdmin


@admin.register(Schedule)
class ScheduleAdmin(ServiceAdmin):
    """Schedules: to read, to pause and to move. Members create them over the API."""

    list_display = ("name", "tenant", "cron", "timezone", "enabled", "next_run_at", "last_problem")
    list_filter = ("enabled",)
    list_select_related = ("tenant",)
    search_fields = ("name", "tenant__slug")
    fields = (
        "tenant", "scope", "name", "cron", "timezone", "enabled", "allow_overlap", "request",
        "next_run_at", "last_run_at", "last_problem", "created_by",
    )  # fmt: skip
    readonly_fields = (
        "tenant", "scope", "request", "next_run_at", "last_run_at", "last_problem", "created_by",
    )  # fmt: skip

    def has_add_permission(self, *_: Any) -> bool:
        """A schedule is somebody's."""
        return False

    def save_model(
        self,
        request: HttpRequest,  # noqa: ARG002 - Django's signature
        obj: Schedule,
        form: Any,
        change: bool,  # noqa: ARG002, FBT001
    ) -> None:
        """Save through the service, which tells the next tick."""
        update_schedule(schedule=obj, values=dict(form.cleaned_data), now=timezone.now())

    def delete_row(self, row: Schedule) -> None:
        """Its runs stay."""
        delete_schedule(schedule=row)


@admin.register(RunRetention)
class RunRetentionAdmin(ServiceAdmin):
    """How many days each tenant keeps its runs."""

    list_display = ("tenant", "days")
    list_select_related = ("tenant",)
    autocomplete_fields = ("tenant",)

    def get_readonly_fields(
        self,
        request: HttpRequest,  # noqa: ARG002 - Django's signature
        obj: RunRetention | None = None,
    ) -> tuple[str, ...]:
        """A policy stays its tenant's."""
        return ("tenant",) if obj else ()

    def save_model(
        self,
        request: HttpRequest,  # noqa: ARG002 - Django's signature
        obj: RunRetention,
        form: Any,  # noqa: ARG002
        change: bool,  # noqa: ARG002, FBT001
    ) -> None:
        """Save through the service, which tells the audit log."""
        keep_runs(tenant=obj.tenant, values={"days": obj.days})
        obj.pk = RunRetention.objects.get(tenant=obj.tenant).pk

    def delete_row(self, row: RunRetention) -> None:
        """Go back to the installation's days."""
        keep_runs(tenant=row.tenant, values=None)
