"""What is stored about encryption keys; the keys themselves come from BROKER_ENCRYPTION_KEYS."""

from django.db import models
from uuid_utils.compat import uuid7

from tenants.managers import ScopedManager
from tenants.models.people import Tenant
from tenants.walls import Wall


class EncryptionKey(models.Model):
    """A key of the keyring that has been used: its check value shows a wrong key at start-up."""

    kek_id = models.CharField(primary_key=True, max_length=64)
    check_value = models.BinaryField()
    abandoned_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="Given up as lost: what it encrypted must be entered again.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.kek_id


class DataKey(models.Model):
    """A tenant's own key, encrypted by one of the keyring. It seals secrets and checks tokens."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="data_keys")
    wrapped = models.BinaryField()
    kek_id = models.CharField(max_length=64, db_index=True)
    created_at = models.DateTimeField(auto_now_add=True)

    wall = Wall()
    objects = ScopedManager["DataKey"]()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["id", "tenant"], name="datakey_id_with_tenant"),
        )

    def __str__(self) -> str:
        return f"data key {self.id} under {self.kek_id}"
