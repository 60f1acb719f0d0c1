"""A client of our own REST API."""

from dataclasses import dataclass, field
from typing import Any

from broker_project.local.json_http import UnreachableError, send_json


class ApiError(Exception):
    """The API refused a request; status and code as it gave them."""

    def __init__(self, request: str, status: int, error: dict[str, Any]) -> None:
        super().__init__(f"{request} was answered {status}: {error.get('message', 'no reason')}")
        self.status = status
        self.code = error.get("code")


class NotReadyError(Exception):
    """The server is up and lacks one of its own; the message says which setting names that."""


@dataclass(frozen=True)
class Api:
    """/api/v1 of one server, with one access token."""

    url: str
    token: str = field(default="", repr=False)

    def get(self, path: str) -> Any:
        """The object at ``path``."""
        return self._send("GET", path)

    def post(self, path: str, **values: object) -> Any:
        """Create at ``path``."""
        return self._send("POST", path, values)

    def patch(self, path: str, **values: object) -> Any:
        """Change the object at ``path``."""
        return self._send("PATCH", path, values)

    def answers(self) -> bool:
        """Whether the server is up, whatever it says."""
        try:
            send_json("GET", f"{self.url}/api/v1/scopes", timeout=2)
        except UnreachableError:
            return False
        return True

    def require_ready(self) -> None:
        """Raise NotReadyError where the server cannot reach its database or Redis."""
        told = send_json("GET", f"{self.url}/readyz", timeout=10).body
        for name, setting in {"database": "DATABASE_URL", "redis": "REDIS_URL"}.items():
            if told[name] != "ok":
                raise NotReadyError(
                    f"Nothing answers at {setting} ({name}): start it, correct {setting}, or unset"
                    " it for an embedded server."
                )

    def knows_token(self) -> bool:
        """Whether the token is good here."""
        answer = send_json("GET", f"{self.url}/api/v1/scopes", token=self.token)
        return answer.status == 200

    def _send(self, method: str, path: str, body: object = None) -> Any:
        answer = send_json(method, f"{self.url}/api/v1/{path}", body, token=self.token)
        if answer.status < 400:
            return answer.body
        error = answer.body.get("error") if isinstance(answer.body, dict) else None
        raise ApiError(f"{method} /api/v1/{path}", answer.status, error or {})
