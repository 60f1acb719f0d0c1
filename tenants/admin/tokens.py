"""Access tokens: made here, shown in one answer, revoked."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone

from tenants.admin.base import KeptAdmin, ModelForm
from tenants.models import AccessToken
from tenants.roles import ALL
from tenants.services.tokens import create_token, revoke_token

if TYPE_CHECKING:
    from django.forms import CheckboxSelectMultiple as UnfoldAdminCheckboxSelectMultipleWidget
else:
    from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget


class AccessTokenForm(ModelForm):
    """A token to make."""

    permissions = forms.MultipleChoiceField(
        choices=[(name, name) for name in sorted(ALL)],
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
    )

    class Meta:
        model = AccessToken
        fields = ("scope", "name", "permissions", "expires_at")


@admin.register(AccessToken)
class AccessTokenAdmin(KeptAdmin):
    """Tokens of all tenants, without their secrets. A revoked one stays, to tell what it did."""

    form = AccessTokenForm
    list_display = (
        "name", "token_id", "tenant", "scope", "expires_at", "revoked_at", "last_used_at",
    )  # fmt: skip
    list_select_related = ("tenant", "scope")
    search_fields = ("^name", "^token_id", "^tenant__slug")
    search_help_text = "How a token's name or id, or a tenant's slug, begins."
    autocomplete_fields = ("scope",)
    actions = ("revoke",)

    def save_model(
        self,
        request: HttpRequest,
        obj: AccessToken,
        form: Any,
        change: bool,  # noqa: ARG002, FBT001 - Django's signature
    ) -> None:
        """Make the token; its text travels with the object to the one answer that shows it."""
        user = request.user if request.user.is_authenticated else None
        new = create_token(created_by=user, **form.cleaned_data)
        obj.pk, obj.token_id = new.row.pk, new.row.token_id
        obj.shown_once = new.text  # type: ignore[attr-defined]

    def response_add(
        self,
        request: HttpRequest,
        obj: AccessToken,
        post_url_continue: str | None = None,  # noqa: ARG002
    ) -> HttpResponse:
        """Show the token. Not as a message: those wait in a cookie or in the database."""
        text = obj.shown_once.reveal()  # type: ignore[attr-defined]
        context = {
            **self.admin_site.each_context(request),
            "title": "Access token",
            "opts": self.opts,
            "token": text,
        }
        return TemplateResponse(request, "admin/tenants/token_once.html", context)

    @admin.action(description="Revoke", permissions=["change"])
    def revoke(self, request: HttpRequest, tokens: QuerySet[AccessToken]) -> None:
        """Refuse the chosen tokens from now on."""
        for token in tokens:
            revoke_token(token=token, now=timezone.now())
        self.message_user(request, "Revoked.")

    def has_change_permission(self, request: HttpRequest, obj: AccessToken | None = None) -> bool:
        """A token is as it was made; the list stays open for the action."""
        return obj is None and super().has_change_permission(request, obj)
