"""What tests of limits share beside tests/tenants/limit_helpers.py."""

import pytest

from tests.tenants.limit_helpers import Clock, gate_of


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def gate(clock):
    return gate_of(clock)
