"""Access tokens, of which only a keyed digest is kept."""

from datetime import datetime
from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from uuid_utils.compat import uuid7

from tenants.managers import ScopedManager
from tenants.models.encryption import DataKey
from tenants.models.indexes import beginnings_of
from tenants.models.people import Scope, Tenant
from tenants.walls import Wall


class AccessToken(models.Model):
    """A right to act as one scope. Format and digest: tenants/tokens.py."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="access_tokens")
    scope = models.ForeignKey(Scope, models.CASCADE, related_name="access_tokens")
    name = models.CharField(max_length=200)
    token_id = models.CharField(max_length=16, unique=True, editable=False)
    digest = models.BinaryField()
    pepper = models.ForeignKey(
        DataKey,
        models.RESTRICT,
        related_name="access_tokens",
        help_text="The data key whose derived pepper the digest was made with.",
    )
    permissions = ArrayField(models.CharField(max_length=32))
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    wall = Wall(scope="scope_id", lookup=("'token:' || {row}.token_id = {lookup}",))
    objects = ScopedManager["AccessToken"]()
    unscoped: ClassVar[models.Manager["AccessToken"]] = models.Manager()

    class Meta:
        indexes = (beginnings_of("name", "accesstoken"), beginnings_of("token_id", "accesstoken"))
        constraints = (
            models.CheckConstraint(
                condition=Q(permissions__len__gt=0), name="accesstoken_has_permissions"
            ),
        )

    def __str__(self) -> str:
        return f"{self.name} (brk_{self.token_id}_…)"

    def is_live(self, now: datetime) -> bool:
        """Neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)
