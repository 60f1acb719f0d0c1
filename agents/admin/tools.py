"""HTTP tools and MCP servers of all tenants: their secrets go in, or out once, and never again."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import method_decorator
from django.views.decorators.debug import sensitive_post_parameters
from rest_framework.exceptions import ValidationError

from agents.admin.signing import SigningAdmin
from agents.models import HttpTool, McpServer
from agents.sealing import is_readable
from agents.serializers.http_tools import ObjectSchema
from agents.services.http_tools import create_http_tool, delete_http_tool, update_http_tool
from agents.services.mcp_servers import create_mcp_server, delete_mcp_server, update_mcp_server
from tenants.admin.base import ModelForm, ServiceAdmin
from tenants.encryption import Secret
from tenants.errors import InvalidInput
from tenants.key_values import key_value

if TYPE_CHECKING:
    from django.forms import PasswordInput as UnfoldAdminPasswordWidget
else:
    from unfold.widgets import UnfoldAdminPasswordWidget


class HttpToolForm(ModelForm):
    """An HTTP tool."""

    class Meta:
        model = HttpTool
        fields = (
            "tenant", "slug", "description", "url", "parameters", "effect",
            "requires_approval", "timeout", "enabled",
        )  # fmt: skip

    def clean_parameters(self) -> dict[str, Any]:
        """The JSON Schema, if it is one of an object."""
        try:
            schema: dict[str, Any] = ObjectSchema().run_validation(self.cleaned_data["parameters"])
        except ValidationError as error:
            raise forms.ValidationError(str(error)) from None
        return schema


@admin.register(HttpTool)
class HttpToolAdmin(SigningAdmin):
    """HTTP tools, without the secrets that sign their requests."""

    form = HttpToolForm
    list_display = ("slug", "tenant", "url", "effect", "enabled", "state", "updated_at")
    list_filter = ("enabled",)
    list_select_related = ("tenant", "data_key")
    search_fields = ("slug", "tenant__slug", "url")
    autocomplete_fields = ("tenant",)

    def get_readonly_fields(self, request: HttpRequest, obj: HttpTool | None = None) -> Any:
        """A stored tool keeps its tenant and its name."""
        fields = super().get_readonly_fields(request, obj)
        return (*fields, "tenant", "slug") if obj else fields

    def save_model(
        self,
        request: HttpRequest,  # noqa: ARG002 - Django's signature
        obj: HttpTool,
        form: Any,
        change: bool,  # noqa: FBT001
    ) -> None:
        """Save through the service; a new tool's secret travels to the one answer that shows it."""
        values = dict(form.cleaned_data)
        if change:
            update_http_tool(tool=obj, values=values)
            return
        new = create_http_tool(tenant=values.pop("tenant"), values=values)
        obj.pk = new.tool.pk
        obj.shown_once = new.secret  # type: ignore[attr-defined]

    def delete_row(self, row: HttpTool) -> None:
        """Runs that name it go on without it."""
        delete_http_tool(tool=row)


class McpServerForm(ModelForm):
    """The token is written only: an empty field leaves it as it is."""

    auth_token = forms.CharField(
        strip=True,
        required=False,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "off"}),
        help_text="Shown to nobody once saved. Leave it empty to keep the present one, if any.",
    )

    class Meta:
        model = McpServer
        fields = (
            "tenant", "plugin", "url", "auth_header", "allowed_tools", "requires_approval",
            "timeout", "enabled",
        )  # fmt: skip

    def clean_auth_token(self) -> Secret[str] | None:
        """The token as a Secret; None to keep the present one."""
        if not self.cleaned_data["auth_token"]:
            return None
        try:
            return key_value(self.cleaned_data["auth_token"])
        except InvalidInput as error:
            refusal = error.message
        raise forms.ValidationError(refusal)

    def clean_allowed_tools(self) -> list[str] | None:
        """Nothing means all."""
        return self.cleaned_data["allowed_tools"] or None


@admin.register(McpServer)
class McpServerAdmin(ServiceAdmin):
    """MCP servers. Saving asks the server for its tools."""

    form = McpServerForm
    list_display = ("plugin", "tenant", "url", "enabled", "token", "listed_at", "last_error")
    list_filter = ("enabled",)
    list_select_related = ("tenant", "data_key")
    search_fields = ("plugin", "tenant__slug", "url")
    autocomplete_fields = ("tenant",)
    readonly_fields = ("token", "tools", "listed_at", "last_error")

    @admin.display(description="token")
    def token(self, server: McpServer) -> str:
        """Whether there is one, and whether it can be opened."""
        if server.data_key_id is None:
            return "none"
        return "stored" if is_readable(server) else "needs re-entry"

    def get_readonly_fields(self, request: HttpRequest, obj: McpServer | None = None) -> Any:
        """A stored server keeps its tenant and its name."""
        fields = super().get_readonly_fields(request, obj)
        return (*fields, "tenant", "plugin") if obj else fields

    def save_model(
        self,
        request: HttpRequest,  # noqa: ARG002 - Django's signature
        obj: McpServer,
        form: Any,
        change: bool,  # noqa: FBT001
    ) -> None:
        """Save through the services, which seal the token."""
        values = dict(form.cleaned_data)
        token = values.pop("auth_token")
        if change:
            update_mcp_server(server=obj, values=values, token=token)
            return
        server = create_mcp_server(tenant=values.pop("tenant"), values=values, token=token)
        obj.pk = server.pk

    @method_decorator(sensitive_post_parameters("auth_token"))
    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Error reports leave the token out."""
        return super().changeform_view(request, *args, **kwargs)

    def delete_row(self, row: McpServer) -> None:
        """Runs that name its tools go on without them."""
        delete_mcp_server(server=row)
