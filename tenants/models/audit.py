"""Who changed what in a tenant. Rows are appended, and a trigger refuses everything else."""

from typing import ClassVar

from django.db import models
from uuid_utils.compat import uuid7

from tenants.managers import ScopedManager
from tenants.walls import Wall


class AuditEntry(models.Model):
    """One change. Never a secret: of a key's or token's value it says only that it changed.

    Neither tenant nor user is a foreign key: an entry outlives what it names.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant_id = models.UUIDField("tenant")
    actor = models.CharField(max_length=300, help_text="A person, a token, or the operator's task.")
    action = models.CharField(max_length=60)
    object_id = models.UUIDField()
    object_name = models.CharField(max_length=300)
    changes = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    wall: ClassVar = Wall(append_only=True, read_by_whole=True)
    objects = ScopedManager["AuditEntry"]()

    class Meta:
        ordering = ("-id",)
        verbose_name_plural = "audit entries"
        indexes = (models.Index(fields=["tenant_id", "id"], name="audit_of_tenant"),)

    def __str__(self) -> str:
        return f"{self.action} {self.object_name}"
