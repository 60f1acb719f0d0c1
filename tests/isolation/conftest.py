"""Acme has one of everything; Charlie of globex has everything too, and wants acme's."""

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from tests.support.belongings import OUR_APPS, belongings_of


@pytest.fixture
def acmes(alice):
    return belongings_of(alice)


@pytest.fixture
def globexes(charlie):
    return belongings_of(charlie)


@pytest.fixture
def staff(charlie):
    """Charlie as tenant staff: every permission of the admin site, and no superuser."""
    User.objects.filter(pk=charlie.user.pk).update(is_staff=True)
    ours = Permission.objects.filter(content_type__app_label__in=OUR_APPS)
    charlie.user.user_permissions.set(ours)
    browser = Client()
    browser.force_login(User.objects.get(pk=charlie.user.pk))
    return browser
