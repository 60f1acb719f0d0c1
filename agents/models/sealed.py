"""Rows that hold a secret, which exists only sealed: bound to the tenant and the row."""

from typing import ClassVar, Self

from django.db import models

from tenants.managers import ScopedManager
from tenants.models import DataKey, Tenant
from tenants.walls import Wall


class SealedRow(models.Model):
    """``sealed`` opens with ``data_key``, in this row and nowhere else; both or neither are set."""

    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="%(class)ss")
    sealed = models.BinaryField(null=True, editable=False)
    data_key = models.ForeignKey(
        DataKey, models.RESTRICT, null=True, editable=False, related_name="+"
    )

    wall = Wall()
    objects: ClassVar[ScopedManager[Self]] = ScopedManager()

    class Meta:
        abstract = True
