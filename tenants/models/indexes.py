"""Indexes of a kind."""

from django.contrib.postgres.indexes import OpClass
from django.db import models
from django.db.models.functions import Upper


def beginnings_of(field: str, table: str) -> models.Index:
    """For look-ups by how a text begins, whatever the case (``istartswith``)."""
    return models.Index(
        OpClass(Upper(field), name="text_pattern_ops"), name=f"{table}_{field}_begins"
    )
