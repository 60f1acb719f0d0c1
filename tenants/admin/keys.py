"""Provider keys: the value goes in and never comes out."""

from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import method_decorator
from django.views.decorators.debug import sensitive_post_parameters

from tenants.admin.base import ModelForm, ServiceAdmin
from tenants.encryption import Secret
from tenants.errors import ApplicationError, InvalidInput
from tenants.key_values import key_value
from tenants.models import ProviderKey
from tenants.runtime import current_broker
from tenants.services.key_checks import Standing, check_key
from tenants.services.keys import add_key, delete_key, update_key
from tenants.vault import is_readable

if TYPE_CHECKING:
    from django.forms import CheckboxInput as UnfoldBooleanSwitchWidget
    from django.forms import PasswordInput as UnfoldAdminPasswordWidget
else:
    from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldBooleanSwitchWidget

CHECKED_AT_ONCE = 10
"""Keys that one action checks, since the page waits for their providers."""

LEVELS = {
    Standing.ACCEPTED: messages.SUCCESS,
    Standing.REFUSED: messages.ERROR,
    Standing.UNKNOWN: messages.WARNING,
}


class ProviderKeyForm(ModelForm):
    """The value is written only: an empty field leaves it as it is."""

    value = forms.CharField(
        strip=False,
        required=False,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "off"}),
        help_text="Shown to nobody once saved. Leave it empty to keep the present value.",
    )

    check = forms.BooleanField(
        label="Check with the provider",
        required=False,
        initial=True,
        widget=UnfoldBooleanSwitchWidget,
        help_text="One call of one token, when the value is saved.",
    )

    class Meta:
        model = ProviderKey
        fields = ("scope", "ref", "label", "priority", "status")

    def clean_value(self) -> Secret[str] | None:
        """The value as a Secret; None to keep the present one."""
        if not self.cleaned_data["value"] and not self.instance._state.adding:  # noqa: SLF001
            return None
        try:
            return key_value(self.cleaned_data["value"])
        except InvalidInput as error:
            refusal = error.message
        raise forms.ValidationError(refusal)


@admin.register(ProviderKey)
class ProviderKeyAdmin(ServiceAdmin):
    """Keys of all tenants, masked."""

    form = ProviderKeyForm
    list_display = ("ref", "ends_in", "tenant", "scope", "state", "priority", "last_used_at")
    list_filter = ("status",)
    list_select_related = ("tenant", "scope", "data_key")
    search_fields = ("^ref", "^label", "^tenant__slug", "^scope__name")
    search_help_text = "How a reference, a label, a tenant's slug or a scope's name begins."
    autocomplete_fields = ("scope",)
    actions = ("check_chosen", "disable_chosen", "enable_chosen")
    readonly_fields = ("ends_in", "state", "last_error", "last_used_at", "created_by", "created_at")

    @admin.display(description="value")
    def ends_in(self, key: ProviderKey) -> str:
        """The last four characters."""
        return f"…{key.hint}" if key.hint else "…"

    @admin.display(description="state")
    def state(self, key: ProviderKey) -> str:
        """The status, or that the value can no longer be opened."""
        if key.data_key_id and not is_readable(key):
            return "needs re-entry"
        return key.get_status_display()

    def get_readonly_fields(self, request: HttpRequest, obj: ProviderKey | None = None) -> Any:
        """A stored value belongs to its scope and reference."""
        fields = super().get_readonly_fields(request, obj)
        return (*fields, "scope", "ref") if obj else fields

    def save_model(
        self,
        request: HttpRequest,
        obj: ProviderKey,
        form: Any,
        change: bool,  # noqa: FBT001 - Django's signature
    ) -> None:
        """Store through the services, which seal the value."""
        values = form.cleaned_data
        if change:
            status = values["status"] if "status" in form.changed_data else None
            update_key(
                key=obj,
                value=values["value"],
                label=values["label"],
                priority=values["priority"],
                status=status,
            )
            return
        key = add_key(
            scope=values["scope"],
            ref=values["ref"],
            value=values["value"],
            label=values["label"],
            priority=values["priority"],
            created_by=request.user if request.user.is_authenticated else None,
        )
        obj.pk, obj.hint = key.pk, key.hint

    def response_add(self, request: HttpRequest, obj: ProviderKey, *args: Any) -> HttpResponse:
        """Say what the provider thinks of the new value."""
        self._check_if_wanted(request, obj)
        return super().response_add(request, obj, *args)

    def response_change(self, request: HttpRequest, obj: ProviderKey) -> HttpResponse:
        """Say what the provider thinks of a replaced value."""
        if request.POST.get("value"):
            self._check_if_wanted(request, obj)
        return super().response_change(request, obj)

    def _check_if_wanted(self, request: HttpRequest, key: ProviderKey) -> None:
        # After the form's transaction: nothing is locked while a provider thinks.
        if request.POST.get("check"):
            transaction.on_commit(partial(self._check, request, key.pk))

    def _check(self, request: HttpRequest, pk: UUID) -> None:
        key = ProviderKey.objects.select_related("data_key", "scope").get(pk=pk)
        try:
            checked = check_key(key=key, broker=current_broker())
        except ApplicationError as error:
            self.message_user(request, f"{key}: {error.message}", messages.WARNING)
        else:
            said = f"{key}: {checked.sentence}"
            self.message_user(request, said, LEVELS[checked.standing])

    @admin.action(description="Check with the provider", permissions=["change"])
    def check_chosen(self, request: HttpRequest, keys: QuerySet[ProviderKey]) -> None:
        """One call of one token with each, of a few at a time."""
        chosen = list(keys.values_list("pk", flat=True))
        for pk in chosen[:CHECKED_AT_ONCE]:
            self._check(request, pk)
        left = len(chosen) - CHECKED_AT_ONCE
        if left > 0:
            said = f"{CHECKED_AT_ONCE} of {len(chosen)} keys were checked, the most at one time;"
            self.message_user(request, f"{said} {left} were not.", messages.WARNING)

    @admin.action(description="Disable", permissions=["change"])
    def disable_chosen(self, request: HttpRequest, keys: QuerySet[ProviderKey]) -> None:
        """Out of use with the next call of every process."""
        self._set_status(request, keys, ProviderKey.Status.DISABLED)

    @admin.action(description="Enable, also after a refusal", permissions=["change"])
    def enable_chosen(self, request: HttpRequest, keys: QuerySet[ProviderKey]) -> None:
        """Back in use."""
        self._set_status(request, keys, ProviderKey.Status.ACTIVE)

    def _set_status(
        self, request: HttpRequest, keys: QuerySet[ProviderKey], status: ProviderKey.Status
    ) -> None:
        for key in keys:
            update_key(key=key, status=status)
        self.message_user(request, f"{len(keys)} keys are {status.label} now.")

    @method_decorator(sensitive_post_parameters("value"))
    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Error reports leave the value out."""
        return super().changeform_view(request, *args, **kwargs)

    def delete_row(self, row: ProviderKey) -> None:
        """Out of use with the next call, which the audit log is told of."""
        delete_key(key=row)
