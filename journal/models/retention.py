"""How long a tenant's calls are kept, and what they said, where that is kept at all."""

from django.db import models
from uuid_utils.compat import uuid7

from tenants.managers import ScopedManager
from tenants.walls import Wall


class RetentionPolicy(models.Model):
    """A tenant's own choice; without one the installation's settings hold.

    Days are counted from a call's start. Metadata without days are kept; payloads never are.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant_id = models.UUIDField("tenant", unique=True)
    metadata_days = models.PositiveIntegerField(null=True, blank=True)
    payload_days = models.PositiveIntegerField(default=30)
    keep_payloads = models.BooleanField(
        default=False, help_text="Keep messages and answers, sealed with the tenant's key."
    )

    wall = Wall()
    objects = ScopedManager["RetentionPolicy"]()

    class Meta:
        verbose_name_plural = "retention policies"

    def __str__(self) -> str:
        return f"of tenant {self.tenant_id}"


class Payload(models.Model):
    """What a call said and was told, sealed with its tenant's key; ``id`` is the call's.

    Partitioned like the calls. No foreign key: payloads go before their calls, in batches.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant_id = models.UUIDField("tenant")
    scope_id = models.UUIDField("scope")
    data_key_id = models.UUIDField("data key")
    sealed = models.BinaryField()

    wall = Wall(scope="scope_id")
    objects = ScopedManager["Payload"]()

    class Meta:
        indexes = (models.Index(fields=["tenant_id", "id"], name="payload_of_tenant"),)

    def __str__(self) -> str:
        return f"of call {self.id}"
