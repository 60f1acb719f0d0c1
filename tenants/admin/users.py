"""Django's users and groups, in the look of the rest, for the operator alone.

People belong to no tenant, or to several: whoever may change one could change all, and make
themselves the operator.
"""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin
from django.contrib.auth.models import Group, User
from django.http import HttpRequest

from tenants.admin.base import ModelAdmin
from tenants.admin_reach import is_operator

if TYPE_CHECKING:
    from django.contrib.auth import admin as auth_admin
    from django.contrib.auth.forms import (
        AdminPasswordChangeForm,
        UserChangeForm,
        UserCreationForm,
    )

    UserAdmin = auth_admin.UserAdmin[User]
else:
    from django.contrib.auth.admin import UserAdmin
    from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

admin.site.unregister((User, Group))


class OperatorsOnly:
    """No permission opens these pages to the staff of a tenant."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        """In the menu."""
        return is_operator(request)

    def has_view_permission(self, request: HttpRequest, *_: Any, **__: Any) -> bool:
        """Also for the search of other pages' forms."""
        return is_operator(request)

    def has_add_permission(self, request: HttpRequest, *_: Any, **__: Any) -> bool:
        return is_operator(request)

    def has_change_permission(self, request: HttpRequest, *_: Any, **__: Any) -> bool:
        return is_operator(request)

    def has_delete_permission(self, request: HttpRequest, *_: Any, **__: Any) -> bool:
        return is_operator(request)


@admin.register(User)
class StyledUserAdmin(OperatorsOnly, UserAdmin, ModelAdmin):
    """People. Those with a personal scope cannot be deleted: their keys and journal hang on it."""

    form: Any = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm


@admin.register(Group)
class StyledGroupAdmin(OperatorsOnly, GroupAdmin, ModelAdmin):
    """Groups of administrators."""
