"""What is done to every request and answer: an id, limits of headers, words to browsers."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from uuid_utils.compat import uuid7

from broker_project import logs
from broker_project.errors import too_large


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


def header_limits(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Refuse heads that no honest client sends, before anything reads them."""

    def middleware(request: HttpRequest) -> HttpResponse:
        headers = request.headers
        size = sum(len(name) + len(value) for name, value in headers.items())
        if len(headers) > settings.HEADERS_MAX_COUNT or size > settings.HEADERS_MAX_BYTES:
            return too_large(request)
        return get_response(request)

    return middleware


SECURITY_HEADERS = {
    # No script-src: the admin's theme evaluates expressions. These hold all the same.
    "Content-Security-Policy": (
        "base-uri 'self'; object-src 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}


def security_headers(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """What Django's own middleware does not send. No cache keeps an answer of the API."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        for name, value in SECURITY_HEADERS.items():
            response.setdefault(name, value)
        if request.path.startswith(("/api/v1/", "/v1/")):
            response.setdefault("Cache-Control", "no-store")
        return response

    return middleware
