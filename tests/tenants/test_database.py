"""The ORM from async code."""

import asyncio
import contextvars
import threading

import pytest
from django.db import connection

from tenants.database import THREADS, from_loop, in_thread

pytestmark = pytest.mark.django_db(transaction=True)


def one():
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        return cursor.fetchone()[0], threading.current_thread().name


def test_a_query_runs_in_a_database_thread():
    value, thread = asyncio.run(in_thread(one))
    assert value == 1
    assert thread.startswith("broker-database")


def test_arguments_results_and_errors_pass_through():
    assert asyncio.run(in_thread(lambda a, *, b: a + b, 1, b=2)) == 3
    with pytest.raises(ZeroDivisionError):
        asyncio.run(in_thread(lambda: 1 / 0))


def test_context_variables_reach_the_thread():
    variable = contextvars.ContextVar("variable", default="unset")

    async def read():
        variable.set("set")
        return await in_thread(variable.get)

    assert asyncio.run(read()) == "set"


def test_no_connection_is_held_between_calls():
    def held():
        return connection.connection is not None

    def used_then_held():
        one()
        return held()

    async def look():
        used = await asyncio.gather(*(in_thread(used_then_held) for _ in range(THREADS)))
        return used, await asyncio.gather(*(in_thread(held) for _ in range(THREADS)))

    while_working, afterwards = asyncio.run(look())
    assert all(while_working)
    assert not any(afterwards)


def test_many_calls_at_once_use_few_connections():
    async def crowd():
        return await asyncio.gather(*(in_thread(one) for _ in range(200)))

    assert len({thread for _, thread in asyncio.run(crowd())}) <= THREADS


def test_blocking_code_under_a_running_loop_can_make_a_short_query():
    async def blocking():
        return from_loop(one)[0]

    assert asyncio.run(blocking()) == 1
