"""Models and keys while the database is away."""

import asyncio

import pytest
from django.db import OperationalError

from broker_project.outage import RememberedRegistry, RememberedSecrets
from llmbroker.memory import DictSecrets
from llmbroker.models import LLMConfig
from llmbroker.ports import KeyRing, KeyWatch, ScopedRegistry
from tenants.outage import Memory


class Database:
    """Ports that ask a database which a test can take away."""

    def __init__(self):
        self.away = False
        self.asked = 0
        self.secrets = DictSecrets({"s1/KEY": "value"})
        self.models = [LLMConfig("m", "http://127.0.0.1:9", "m", "KEY")]

    def _ask(self):
        self.asked += 1
        if self.away:
            raise OperationalError("away")

    async def load(self):
        return self.models

    async def load_for(self, scope):
        self._ask()
        return self.models

    async def resolve(self, ref):
        self._ask()
        return await self.secrets.resolve(ref)

    async def keys(self, ref, *, scope):
        self._ask()
        return await self.secrets.keys(ref, scope=scope)

    async def keyring(self, refs, *, scope):
        self._ask()
        return {ref: await self.secrets.keys(ref, scope=scope) for ref in refs}

    async def key_refused(self, key, *, detail):
        self._ask()


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def database():
    return Database()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def secrets(database, clock):
    return RememberedSecrets(database, Memory(60, clock))


@pytest.fixture
def registry(database, clock):
    return RememberedRegistry(database, Memory(60, clock))


def run(work):
    return asyncio.run(work)


def test_they_are_still_the_ports_that_they_stand_for(secrets, registry):
    assert isinstance(secrets, KeyRing)
    assert isinstance(secrets, KeyWatch)
    assert isinstance(registry, ScopedRegistry)


def test_a_scope_in_use_goes_on(database, secrets, registry):
    before = run(registry.load_for("s1")), run(secrets.keyring(["KEY"], scope="s1"))
    database.away = True
    after = run(registry.load_for("s1")), run(secrets.keyring(["KEY"], scope="s1"))
    assert before == after
    assert after[1]["KEY"][0].value == "value"


def test_another_scope_gets_nobodys_keys(database, secrets):
    run(secrets.keyring(["KEY"], scope="s1"))
    database.away = True
    with pytest.raises(OperationalError):
        run(secrets.keyring(["KEY"], scope="s2"))


def test_with_the_database_there_every_call_asks_it(database, secrets):
    run(secrets.keys("KEY", scope="s1"))
    database.secrets = DictSecrets({})
    assert run(secrets.keys("KEY", scope="s1")) == []
    database.away = True
    assert run(secrets.keys("KEY", scope="s1")) == []


def test_memory_ends(database, secrets, clock):
    run(secrets.keys("KEY", scope="s1"))
    database.away = True
    clock.now += 61
    with pytest.raises(OperationalError):
        run(secrets.keys("KEY", scope="s1"))


def test_a_failed_database_is_left_in_peace_for_a_second(database, secrets, clock):
    run(secrets.keys("KEY", scope="s1"))
    database.away = True
    for _ in range(5):
        run(secrets.keys("KEY", scope="s1"))
    assert database.asked == 2
    database.away = False
    clock.now += 1.1
    run(secrets.keys("KEY", scope="s1"))
    assert database.asked == 3


def test_a_refused_key_is_no_fault_while_nobody_can_note_it(database, secrets):
    (key,) = run(secrets.keys("KEY", scope="s1"))
    database.away = True
    run(secrets.key_refused(key, detail="401"))
