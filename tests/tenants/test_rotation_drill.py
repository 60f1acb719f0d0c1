"""The drill of benchmarks/rotation.py, small: keys are rotated while calls use them."""

import pytest

from benchmarks.rotation import drill


@pytest.mark.django_db(transaction=True)
def test_a_rotation_under_load_fails_no_call_and_needs_the_old_key_no_longer(settings):
    settings.BROKER_ENCRYPTION_KEYS = settings.BROKER_ENCRYPTION_KEYS  # put back afterwards
    result = drill(1200)
    assert result["data keys"] == 1200
    assert result["calls meanwhile"] > 0
    assert result["calls afterwards, without the old key"] > 0
    assert result["failed calls"] == 0, result["first failures"]
