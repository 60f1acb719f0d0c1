"""What must be true before a process serves: asked by web and worker when they start."""

import logging

from django.db import DatabaseError

from tenants.startup import require_safe_start

logger = logging.getLogger(__name__)


def refuse_wrong_keys() -> None:
    """ImproperlyConfigured if the encryption keys do not fit the database, or its walls are down.

    A database that is away or not migrated yet is not a reason: it is named, and the process
    starts.
    """
    try:
        require_safe_start()
    except DatabaseError as error:
        logger.warning(
            "keys and walls could not be checked against the database: %s",
            type(error).__name__,
        )
