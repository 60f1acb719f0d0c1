"""Wrong or missing encryption keys: a clear error at the start, not a crash on a page."""

import os
import subprocess
import sys

import pytest
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured

from tenants.encryption import Secret
from tenants.errors import SecretUnavailable
from tenants.models import DataKey, EncryptionKey
from tenants.services.keys import add_key
from tenants.startup import require_safe_start

OLD = "t1:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
WRONG = "t1:ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="
NEW = "new:ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="


@pytest.fixture(autouse=True)
def one_key(settings):
    settings.BROKER_ENCRYPTION_KEYS = OLD


def faults(databases=("default",)):
    found = run_checks(databases=databases)
    return [error.id for error in found if error.id.startswith("tenants")]


def test_an_empty_database_takes_any_key(db):
    assert faults() == []
    require_safe_start()


def test_the_keys_that_the_database_was_written_with_pass(alice, settings):
    assert faults() == []
    settings.BROKER_ENCRYPTION_KEYS = f"{NEW},{OLD}"
    assert faults() == []
    require_safe_start()


def test_another_key_under_a_known_id_is_refused_before_it_encrypts_anything(alice, settings):
    settings.BROKER_ENCRYPTION_KEYS = WRONG
    assert faults() == ["tenants.E001"]
    with pytest.raises(ImproperlyConfigured, match="not the one that encrypted"):
        require_safe_start()
    with pytest.raises(SecretUnavailable, match="another key under the id"):
        add_key(scope=alice.scope, ref="A_KEY", value=Secret("x" * 30))
    assert DataKey.objects.count() == 1


def test_a_missing_key_is_named_with_what_to_do(alice, settings):
    settings.BROKER_ENCRYPTION_KEYS = NEW
    assert faults() == ["tenants.E002"]
    with pytest.raises(ImproperlyConfigured, match=r"'t1'.*\n.*--abandon t1"):
        require_safe_start()


def test_a_missing_key_that_encrypts_nothing_is_not_missed(db, settings):
    EncryptionKey.objects.create(kek_id="gone", check_value=b"x" * 32)
    assert faults() == []


def test_nothing_is_asked_of_the_database_unless_a_check_may(db, settings):
    settings.BROKER_ENCRYPTION_KEYS = NEW
    assert faults(databases=None) == []


@pytest.mark.parametrize("value", ["t1", "t1:c2VjcmV0LW1hcmtlci1zZWNyZXQtbWFya2Vy"])
def test_a_process_with_an_unreadable_keyring_does_not_start_and_repeats_no_key(value):
    done = subprocess.run(
        [sys.executable, "-W", "error", "manage.py", "check"],
        env={**os.environ, "BROKER_ENCRYPTION_KEYS": value},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith("Error: BROKER_ENCRYPTION_KEYS: ")
    assert "32 bytes" in sentence
    assert value.partition(":")[2] not in done.stderr or not value.partition(":")[2]


def test_keys_may_stand_in_a_file_one_to_a_line(tmp_path):
    path = tmp_path / "keys"
    path.write_text(f"{NEW}\n{OLD}\n")
    shown = settings_of_a_process(path, "settings.BROKER_ENCRYPTION_KEYS")
    assert shown.stdout == f"{NEW},{OLD}"


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    missing = settings_of_a_process(tmp_path / "gone", "settings.DEBUG")
    assert missing.returncode != 0
    assert "BROKER_ENCRYPTION_KEYS_FILE cannot be read" in missing.stderr


def settings_of_a_process(path, shown):
    code = f"from django.conf import settings; print({shown}, end='')"
    kept = {name: value for name, value in os.environ.items() if name != "BROKER_ENCRYPTION_KEYS"}
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**kept, "BROKER_ENCRYPTION_KEYS_FILE": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )
