"""Tenants, their members, and the scopes that own keys and pay for calls."""

from typing import ClassVar

from django.conf import settings
from django.core.validators import MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Q
from uuid_utils.compat import uuid7

from tenants.managers import ScopedManager
from tenants.models.indexes import beginnings_of
from tenants.walls import Wall

SLUG = RegexValidator(
    r"\A[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\Z",
    "A slug has 1–63 lower-case letters, digits and inner hyphens.",
)


_OF_A_SHOWN_ROW = (
    "{lookup} IS NOT NULL AND {row}.id IN (SELECT tenant_id FROM tenants_scope"
    " UNION ALL SELECT tenant_id FROM tenants_membership)"
)
"""A look-up that shows a scope or a membership shows its tenant."""


class Tenant(models.Model):
    """A customer: the wall that no row, key or call crosses."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    slug = models.CharField(max_length=63, unique=True, validators=[SLUG])
    name = models.CharField(max_length=200)
    uses_installation_keys = models.BooleanField(
        default=False,
        help_text="May pay with the installation's own keys where it has none itself.",
    )
    run_weight = models.PositiveSmallIntegerField(
        default=1,
        db_default=1,
        validators=[MinValueValidator(1)],
        help_text="How many runs it is given for each one of a tenant of weight 1.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    wall = Wall(tenant="id", lookup=(_OF_A_SHOWN_ROW,))
    objects = ScopedManager["Tenant"]()
    unscoped: ClassVar[models.Manager["Tenant"]] = models.Manager()

    class Meta:
        ordering = ("slug",)
        indexes = (beginnings_of("slug", "tenant"), beginnings_of("name", "tenant"))
        constraints = (
            models.CheckConstraint(
                condition=Q(slug__regex=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"), name="tenant_slug_form"
            ),
            models.CheckConstraint(condition=Q(run_weight__gte=1), name="tenant_run_weight_range"),
        )

    def __str__(self) -> str:
        return self.slug


class Membership(models.Model):
    """A person's role in a tenant."""

    class Role(models.TextChoices):
        OWNER = "owner"
        ADMIN = "admin"
        MEMBER = "member"
        VIEWER = "viewer"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.MEMBER)
    created_at = models.DateTimeField(auto_now_add=True)

    wall = Wall(lookup=("'user:' || {row}.user_id = {lookup}",))
    objects = ScopedManager["Membership"]()
    unscoped: ClassVar[models.Manager["Membership"]] = models.Manager()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["tenant", "user"], name="membership_once_per_tenant"),
            models.CheckConstraint(
                condition=Q(role__in=["owner", "admin", "member", "viewer"]),
                name="membership_role_known",
            ),
        )

    def __str__(self) -> str:
        return f"{self.role} {self.user_id} of {self.tenant_id}"


class Scope(models.Model):
    """Whose keys pay and whose journal rows these are: one person's in a tenant, or the tenant's.

    The engine's scope string is ``str(scope.id)``. A person with a personal scope cannot be
    deleted: keys and journal hang on it, and erasing those is an act of its own.
    """

    class Kind(models.TextChoices):
        PERSONAL = "personal"
        SHARED = "shared"

    class KeyPolicy(models.TextChoices):
        OWN_THEN_SHARED = "own_then_shared", "own keys, then the tenant's"
        OWN_ONLY = "own_only", "own keys only"
        SHARED_ONLY = "shared_only", "the tenant's keys only"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="scopes")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, blank=True, related_name="scopes"
    )
    name = models.CharField(max_length=200)
    key_policy = models.CharField(
        max_length=20, choices=KeyPolicy.choices, default=KeyPolicy.OWN_THEN_SHARED
    )
    created_at = models.DateTimeField(auto_now_add=True)

    wall = Wall(
        scope="id",
        also_read="{row}.kind = 'shared'",
        lookup=("'scope:' || {row}.id = {lookup}", "'user:' || {row}.user_id = {lookup}"),
    )
    objects = ScopedManager["Scope"]()
    unscoped: ClassVar[models.Manager["Scope"]] = models.Manager()

    class Meta:
        indexes = (beginnings_of("name", "scope"),)
        constraints = (
            # The target of every foreign key that names a scope together with its tenant.
            models.UniqueConstraint(fields=["id", "tenant"], name="scope_id_with_tenant"),
            models.UniqueConstraint(
                fields=["tenant", "user"],
                condition=Q(kind="personal"),
                name="scope_one_personal_per_member",
            ),
            models.UniqueConstraint(
                fields=["tenant"], condition=Q(kind="shared"), name="scope_one_shared_per_tenant"
            ),
            models.CheckConstraint(
                condition=Q(kind="personal", user__isnull=False)
                | Q(kind="shared", user__isnull=True),
                name="scope_personal_has_user",
            ),
            models.CheckConstraint(
                condition=Q(key_policy__in=["own_then_shared", "own_only", "shared_only"]),
                name="scope_key_policy_known",
            ),
        )

    def __str__(self) -> str:
        return f"{self.name} ({self.kind})"
