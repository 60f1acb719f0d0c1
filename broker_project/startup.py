"""What must be true before a process serves: asked by web and worker when they start."""

import logging

from django.db import DatabaseError

from tenants.startup import require_encryption_keys

logger = logging.getLogger(__name__)


def refuse_wrong_keys() -> None:
    """ImproperlyConfigured if BROKER_ENCRYPTION_KEYS does not fit the database.

    A database that is away or not migrated yet is not a reason: it is named, and the process
    starts.
    """
    try:
        require_encryption_keys()
    except DatabaseError as error:
        logger.warning(
            "the encryption keys could not be checked against the database: %s",
            type(error).__name__,
        )
