"""Envelopes: what is sealed opens where it was sealed, unchanged, and nowhere else."""

import copy
import json
import pickle
import traceback
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from tenants.encryption import (
    DataKeys,
    EnvKeyring,
    KeyUnavailable,
    Place,
    Secret,
    Tampered,
    WrappedKey,
)
from tenants.encryption.packing import packed

OLD = "old:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
NEW = "new:ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="
MARKER = "sk-fake-7Hq2mZ0pTENANTA93xLw"
PLACE = Place("tenants_providerkey.sealed", uuid7())


@pytest.fixture
def keys():
    return DataKeys(EnvKeyring(OLD))


@pytest.fixture
def key(keys):
    return keys.new(key_id=uuid7(), tenant_id=uuid7())


def test_a_sealed_secret_opens_in_its_place(keys, key):
    sealed = keys.seal(key, PLACE, Secret("ключ-🔑"))
    assert keys.open(key, PLACE, sealed).reveal() == "ключ-🔑"


def test_the_same_secret_is_sealed_differently_each_time(keys, key):
    assert keys.seal(key, PLACE, Secret(MARKER)) != keys.seal(key, PLACE, Secret(MARKER))


def test_a_sealed_secret_has_the_documented_form(keys, key):
    sealed = keys.seal(key, PLACE, Secret("abc"))
    assert sealed[:2] == b"\x01\x01"
    assert UUID(bytes=sealed[2:18]) == key.id
    assert len(sealed) == 18 + 12 + len("abc") + 16


def test_a_wrapped_key_has_the_documented_form(key):
    assert key.wrapped[:3] == b"\x01\x01\x03"
    assert key.wrapped[3:6] == b"old"
    assert len(key.wrapped) == 6 + 12 + 32 + 16


def test_a_change_of_any_byte_of_a_sealed_secret_shows(keys, key):
    sealed = keys.seal(key, PLACE, Secret(MARKER))
    for index in range(len(sealed)):
        for flip in (1, 128):
            changed = bytearray(sealed)
            changed[index] ^= flip
            with pytest.raises(Tampered):
                keys.open(key, PLACE, bytes(changed))


def test_a_change_of_any_byte_of_a_wrapped_key_shows(keys, key):
    sealed = keys.seal(key, PLACE, Secret(MARKER))
    for index in range(len(key.wrapped)):
        for flip in (1, 128):
            changed = bytearray(key.wrapped)
            changed[index] ^= flip
            with pytest.raises((Tampered, KeyUnavailable)):
                keys.open(WrappedKey(key.id, key.tenant_id, bytes(changed)), PLACE, sealed)


def test_bytes_cut_off_anywhere_show(keys, key):
    sealed = keys.seal(key, PLACE, Secret(MARKER))
    for length in range(len(sealed)):
        with pytest.raises(Tampered):
            keys.open(key, PLACE, sealed[:length])
    for length in range(len(key.wrapped)):
        with pytest.raises((Tampered, KeyUnavailable)):
            keys.open(WrappedKey(key.id, key.tenant_id, key.wrapped[:length]), PLACE, sealed)


def test_a_sealed_secret_does_not_open_in_another_row_column_tenant_or_key(keys, key):
    sealed = keys.seal(key, PLACE, Secret(MARKER))
    elsewhere = [
        (key, Place(PLACE.column, uuid7())),
        (key, Place("tenants_webhook.sealed", PLACE.row_id)),
        (WrappedKey(key.id, uuid7(), key.wrapped), PLACE),
        (WrappedKey(uuid7(), key.tenant_id, key.wrapped), PLACE),
        (keys.new(key_id=uuid7(), tenant_id=key.tenant_id), PLACE),
        (keys.new(key_id=key.id, tenant_id=key.tenant_id), PLACE),
    ]
    for other_key, other_place in elsewhere:
        with pytest.raises(Tampered):
            keys.open(other_key, other_place, sealed)


def test_rewrapping_moves_a_data_key_and_leaves_its_secrets_alone(keys, key):
    sealed = keys.seal(key, PLACE, Secret(MARKER))
    moved = DataKeys(EnvKeyring(f"{NEW},{OLD}")).rewrap(key)
    assert b"new" in moved.wrapped[:6]
    assert DataKeys(EnvKeyring(NEW)).open(moved, PLACE, sealed).reveal() == MARKER


def test_a_missing_encryption_key_is_named_by_its_id_alone(key):
    with pytest.raises(KeyUnavailable, match="'old'") as refused:
        DataKeys(EnvKeyring(NEW)).rewrap(key)
    assert refused.value.kek_id == "old"


def test_another_key_under_the_same_id_does_not_open(key):
    with pytest.raises(Tampered):
        DataKeys(EnvKeyring("old:" + NEW.partition(":")[2])).rewrap(key)


def test_digests_depend_on_the_data_key_the_purpose_and_every_part(keys, key):
    other = keys.new(key_id=uuid7(), tenant_id=key.tenant_id)
    digests = [
        keys.digest(key, "fingerprint", "a", "b"),
        keys.digest(key, "token", "a", "b"),
        keys.digest(key, "fingerprint", "ab"),
        keys.digest(key, "fingerprint", "a", "c"),
        keys.digest(other, "fingerprint", "a", "b"),
    ]
    assert len(set(digests)) == len(digests)
    assert digests[0] == keys.digest(key, "fingerprint", "a", "b")


def test_packing_is_unambiguous():
    assert packed("a", "bc") != packed("ab", "c")
    assert packed("a") != packed("a", "")


def test_the_first_key_of_the_ring_is_the_active_one():
    ring = EnvKeyring(f" {NEW} , {OLD} ")
    assert (ring.active, ring.ids) == ("new", {"new", "old"})


def test_check_values_tell_keys_apart_and_nothing_else():
    ring, again = EnvKeyring(f"{NEW},{OLD}"), EnvKeyring(OLD)
    assert ring.check_value("old") == again.check_value("old")
    assert ring.check_value("old") != ring.check_value("new")
    assert ring.check_value("old") != EnvKeyring("old:" + NEW.partition(":")[2]).check_value("old")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "entry 1"),
        ("justsomething", "not the base64 of 32 bytes"),
        (":MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", "entry 1"),
        ("a b:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", "entry 1"),
        ("short:c2hvcnQ=", "'short'"),
        ("rubbish:!!!!", "'rubbish'"),
        (f"{OLD},{OLD}", "twice"),
        (f"{OLD},", "entry 2"),
    ],
)
def test_a_keyring_that_cannot_be_read_says_why_without_its_keys(text, says):
    with pytest.raises(ValueError, match=says) as refused:
        EnvKeyring(text)
    assert "MDEy" not in str(refused.value)


def test_a_secret_shows_itself_only_when_asked_by_name():
    secret = Secret(MARKER)
    shown = [
        str(secret),
        repr(secret),
        f"{secret}",
        repr([secret]),
        repr({1: secret}),
    ]
    assert not any(MARKER[:8] in text for text in shown)
    assert secret.reveal() == MARKER
    for leak in (pickle.dumps, json.dumps, copy.copy, copy.deepcopy, vars):
        with pytest.raises(TypeError) as refused:
            leak(secret)
        assert MARKER[:8] not in str(refused.value)


def test_no_traceback_of_a_failed_opening_holds_a_key_or_a_secret(keys, key):
    sealed = keys.seal(key, PLACE, Secret(MARKER))
    try:
        keys.open(key, Place("elsewhere", uuid7()), sealed)
    except Tampered as error:
        text = "".join(
            traceback.TracebackException.from_exception(error, capture_locals=True).format()
        )
    assert MARKER[:8] not in text
    assert "0123456789abcdef" not in text
