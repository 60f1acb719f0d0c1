"""A request id on every request and answer, for logs and error reports."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from uuid_utils.compat import uuid7

from broker_project import logs


def request_id(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Give the request an id of ours; a caller's own id is never trusted."""

    def middleware(request: HttpRequest) -> HttpResponse:
        request.request_id = f"req_{uuid7().hex}"  # type: ignore[attr-defined]
        token = logs.request_id.set(request.request_id)  # type: ignore[attr-defined]
        try:
            response = get_response(request)
        finally:
            logs.request_id.reset(token)
        response["X-Request-Id"] = request.request_id  # type: ignore[attr-defined]
        return response

    return middleware
