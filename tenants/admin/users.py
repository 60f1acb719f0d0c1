"""Django's users and groups, in the look of the rest."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin
from django.contrib.auth.models import Group, User

from tenants.admin.base import ModelAdmin

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


@admin.register(User)
class StyledUserAdmin(UserAdmin, ModelAdmin):
    """People. Those with a personal scope cannot be deleted: their keys and journal hang on it."""

    form: Any = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm


@admin.register(Group)
class StyledGroupAdmin(GroupAdmin, ModelAdmin):
    """Groups of administrators."""
