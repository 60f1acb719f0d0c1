"""What must be true before a process serves: asked by web and worker when they start."""

import logging

from django.db import DatabaseError, connection

from agents.tool_registry import installed_tools
from tenants.startup import require_safe_start

logger = logging.getLogger(__name__)


def refuse_wrong_settings() -> None:
    """ImproperlyConfigured if plugins are missing, keys do not fit the database, or walls are down.

    A database that is away or not migrated yet is not a reason: it is named, and the process
    starts.
    """
    installed_tools()
    try:
        require_safe_start()
    except DatabaseError as error:
        logger.warning(
            "keys and walls could not be checked against the database: %s",
            type(error).__name__,
        )
    finally:
        # Whoever asked goes on without it: a connection that is kept here is kept for ever.
        connection.close()
