"""What a service may refuse, in words for the caller. broker_project/errors.py maps it to HTTP.

ApplicationError            code, message, param
├── InvalidInput            400
├── NotAuthenticated        401
├── PermissionRefused       403
├── NotFound                404  also for what belongs to another tenant
├── Conflict                409
└── SecretUnavailable       503  a stored secret cannot be opened; nobody else's is used instead
"""

# ruff: noqa: N818 - they are named for what happened

from typing import ClassVar

from llmbroker.errors import KeyUnavailableError


class ApplicationError(Exception):
    """A request refused for a reason that its caller may read; never holds a secret's value."""

    default_code: ClassVar[str] = "error"

    def __init__(self, message: str, *, code: str | None = None, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.param = param


class InvalidInput(ApplicationError):
    """The input does not fit; ``param`` names the field."""

    default_code = "invalid_value"


class NotAuthenticated(ApplicationError):
    """Nobody, or nobody known, is calling."""

    default_code = "invalid_token"


class PermissionRefused(ApplicationError):
    """The caller is known and may not do this."""

    default_code = "permission_denied"


class NotFound(ApplicationError):
    """No such object within the caller's reach."""

    default_code = "not_found"


class Conflict(ApplicationError):
    """It clashes with what is already stored."""

    default_code = "conflict"


class SecretUnavailable(ApplicationError, KeyUnavailableError):
    """A stored secret cannot be opened. The engine knows it as its KeyUnavailableError."""

    default_code = "secret_unavailable"
