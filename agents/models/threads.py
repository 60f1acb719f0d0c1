"""Threads: conversations of several runs."""

from django.db import models
from uuid_utils.compat import uuid7

from tenants.managers import ScopedManager
from tenants.models import Scope, Tenant
from tenants.walls import Wall


class Thread(models.Model):
    """A conversation of one scope. One run at a time goes on in it; others wait or are refused.

    Who adds to it locks its row, after any run's.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="threads")
    scope = models.ForeignKey(Scope, models.CASCADE, db_index=False, related_name="threads")
    metadata = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    wall = Wall(scope="scope_id")
    objects = ScopedManager["Thread"]()

    class Meta:
        indexes = (models.Index(fields=["scope", "id"], name="thread_of_scope"),)
        constraints = (
            # The target of foreign keys that name a thread together with its tenant.
            models.UniqueConstraint(fields=["id", "tenant"], name="thread_id_with_tenant"),
        )

    def __str__(self) -> str:
        return f"thread {self.id}"


class ThreadMessage(models.Model):
    """What somebody, or a run, said in a thread; never changed."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    thread = models.ForeignKey(Thread, models.CASCADE, db_index=False, related_name="messages")
    number = models.PositiveIntegerField()
    message = models.JSONField(help_text="With role and content, as models take it.")
    run_id = models.UUIDField(null=True, help_text="The run that it came with, or from.")
    created_at = models.DateTimeField(auto_now_add=True)

    wall = Wall(parent=("thread_id", "agents_thread"))
    objects = ScopedManager["ThreadMessage"]()

    class Meta:
        ordering = ("number",)
        constraints = (
            models.UniqueConstraint(fields=["thread", "number"], name="thread_message_number_once"),
        )

    def __str__(self) -> str:
        return f"message {self.number}"
