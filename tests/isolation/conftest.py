"""Acme has one of everything; Charlie of globex has everything too, and wants acme's."""

import pytest

from tests.support.belongings import belongings_of


@pytest.fixture
def acmes(alice):
    return belongings_of(alice)


@pytest.fixture
def globexes(charlie):
    return belongings_of(charlie)
