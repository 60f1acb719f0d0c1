"""Runs of all tenants: to read, to cancel, and to do again from one of their steps."""

import contextlib
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html

from agents.admin import run_page
from agents.models import Run
from agents.services.cancelling import cancel_run
from agents.services.retrying import retry_run
from tenants.admin.base import KeptAdmin
from tenants.caller import Caller

_CANCEL_BUTTON = "agents_run_cancel"


@admin.register(Run)
class RunAdmin(KeptAdmin):
    """A run's page shows what was asked, where it stands, and its steps as a timeline."""

    list_display = ("id", "status", "tenant", "scope", "agent", "operation", "created_at")
    list_filter = ("status", "incomplete_reason", "created_at")
    list_select_related = ("tenant", "scope", "agent")
    show_facets = admin.ShowFacets.NEVER
    list_per_page = 50
    ordering = ("-id",)
    sortable_by = ()
    search_fields = ("id",)
    search_help_text = "The id of a run, a scope or a tenant, or a trace."
    actions = ("cancel_chosen",)
    actions_submit_line = ("cancel",)
    fieldsets = (
        (None, {"fields": ("status", "incomplete_reason", "last_error", "output_text")}),
        ("What it did", {"fields": ("timeline", "usage")}),
        ("What it cost, and who paid", {"fields": ("costs",)}),
        (
            "What was asked",
            {
                "fields": (
                    *("conversation", "agent", "agent_version", "thread", "schedule", "tools"),
                    *("max_steps", "prefer", "output_schema", "deltas", "metadata"),
                )
            },
        ),
        ("Whose it is", {"fields": ("tenant", "scope", "created_by", "operation", "trace_id")}),
        (
            "Times",
            {"fields": ("created_at", "started_at", "cancel_requested_at", "ended_at")},
        ),
        ("Its worker", {"fields": ("fence", "lease_until", "due_at")}),
    )

    def get_readonly_fields(
        self,
        request: HttpRequest,  # noqa: ARG002 - Django's signature
        obj: Run | None = None,  # noqa: ARG002
    ) -> list[str]:
        """Every field: a run changes through what happens to it."""
        return [str(name) for _, options in self.fieldsets for name in options["fields"]]

    def has_add_permission(self, *_: Any) -> bool:
        """Runs are created over the API."""
        return False

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Run], search_term: str
    ) -> tuple[QuerySet[Run], bool]:
        """By exact ids, which the indexes can find."""
        word = search_term.strip()
        if not word:
            return super().get_search_results(request, queryset, search_term)
        named = Q(trace_id=word)
        with contextlib.suppress(ValueError):
            identity = UUID(word)
            named |= Q(id=identity) | Q(scope=identity) | Q(tenant=identity)
        return queryset.filter(named), False

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """The page, without buttons that would save."""
        buttons = {"show_save": False, "show_save_and_continue": False}
        return super().changeform_view(
            request, object_id, form_url, {**(extra_context or {}), **buttons}
        )

    def get_actions_submit_line(self, request: HttpRequest, object_id: Any) -> list[Any]:
        """No button that cancels where there is nothing to cancel any more."""
        run = self.get_object(request, str(object_id))
        if run is None or run.is_over:
            return []
        buttons: list[Any] = super().get_actions_submit_line(request, object_id)  # type: ignore[misc]
        return buttons

    def save_model(
        self,
        request: HttpRequest,
        obj: Run,
        form: Any,  # noqa: ARG002 - Django's signature
        change: bool,  # noqa: ARG002, FBT001
    ) -> None:
        """Do what the button says. The object is not saved: it is as old as the page."""
        if _CANCEL_BUTTON in request.POST:
            self.cancel(request, obj)
        elif run_page.RETRY_BUTTON in request.POST:
            self.retry(request, obj, request.POST[run_page.RETRY_BUTTON])

    def retry(self, request: HttpRequest, run: Run, step: str) -> None:
        """The buttons beside a run's model calls."""
        if not step.isdecimal():
            return
        by = request.user if isinstance(request.user, User) else None
        caller = Caller(run.tenant, run.scope, by, None, frozenset())
        new = retry_run(run=run, caller=caller, from_step=int(step[:9]))
        url = reverse("admin:agents_run_change", args=[new.pk])
        self.message_user(request, format_html('Goes on as <a href="{}">{}</a>.', url, new))

    @admin.action(description="Cancel this run")
    def cancel(self, request: HttpRequest, run: Run) -> None:
        """The button on a run's page."""
        self.message_user(request, f"The run is {cancel_run(run_id=run.pk).status}.")

    @admin.action(description="Cancel the chosen runs", permissions=["change"])
    def cancel_chosen(self, request: HttpRequest, runs: QuerySet[Run]) -> None:
        """The action on the list."""
        for run_id in runs.values_list("id", flat=True):
            cancel_run(run_id=run_id)
        self.message_user(request, "Cancelled, or being cancelled at their next step.")

    @admin.display(description="messages")
    def conversation(self, run: Run) -> str:
        """What was asked."""
        return run_page.conversation(run)

    @admin.display(description="steps")
    def timeline(self, run: Run) -> str:
        """The run's steps, in order."""
        return run_page.timeline(run)

    @admin.display(description="calls")
    def costs(self, run: Run) -> str:
        """The run's attempts at models."""
        return run_page.costs(run)
