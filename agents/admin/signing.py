"""Pages of what is called with a signature, whose secret is shown once: when it is added."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from agents.models.sealed import SealedRow
from agents.sealing import is_readable
from tenants.admin.base import ServiceAdmin


class SigningAdmin(ServiceAdmin):
    """Whoever saves a new row leaves its secret in ``obj.shown_once``."""

    @admin.display(description="secret")
    def state(self, row: SealedRow) -> str:
        """Whether its secret can be opened."""
        return "stored" if is_readable(row) else "needs a new one"

    def response_add(
        self,
        request: HttpRequest,
        obj: Any,
        post_url_continue: str | None = None,  # noqa: ARG002 - Django's signature
    ) -> HttpResponse:
        """Show the secret. Not as a message: those wait in a cookie or in the database."""
        context = {
            **self.admin_site.each_context(request),
            "title": "Signing secret",
            "opts": self.opts,
            "secret": obj.shown_once.reveal(),
        }
        return TemplateResponse(request, "admin/agents/secret_once.html", context)
