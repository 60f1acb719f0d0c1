"""Requests that say by a key which of them are one."""

from django.db import models
from uuid_utils.compat import uuid7

from tenants.managers import ScopedManager
from tenants.models.people import Scope, Tenant
from tenants.walls import Wall


class IdempotentRequest(models.Model):
    """What was answered to the first request with a key. Secrets in the answer are left out."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, db_index=False, related_name="+")
    scope = models.ForeignKey(Scope, models.CASCADE, db_index=False, related_name="+")
    key = models.CharField(max_length=255)
    fingerprint = models.BinaryField(help_text="Of route and body, with our key.")
    status = models.PositiveSmallIntegerField(default=0)
    answer = models.JSONField(null=True)
    expires_at = models.DateTimeField(db_index=True)

    wall = Wall(scope="scope_id")
    objects = ScopedManager["IdempotentRequest"]()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["scope", "key"], name="idempotency_key_once_per_scope"),
        )

    def __str__(self) -> str:
        return f"request {self.id}"
