"""Which database constraint a write broke, so that a race ends as a sentence and not as a 500."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import IntegrityError, transaction

from tenants.errors import Conflict


@contextmanager
def conflict_if(constraint: str, message: str, *, param: str | None = None) -> Iterator[None]:
    """Run the block in a savepoint; Conflict with ``message`` where it breaks ``constraint``."""
    try:
        with transaction.atomic():
            yield
    except IntegrityError as error:
        if constraint != _broken(error):
            raise
        refusal = Conflict(message, code="already_exists", param=param)
    else:
        return
    raise refusal  # outside the handler: the database's own message quotes the row


def _broken(error: IntegrityError) -> str | None:
    diagnosis = getattr(error.__cause__, "diag", None)
    name: str | None = getattr(diagnosis, "constraint_name", None)
    return name
