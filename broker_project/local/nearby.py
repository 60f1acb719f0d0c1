"""Servers on the usual ports of this machine, where the tests may really use them."""

from itertools import islice

import psycopg
import redis

POSTGRES_URL = "postgres://postgres@127.0.0.1:5432/postgres"
OLDEST_POSTGRES = 15_00_00
# The last of the 16 databases that a server has unless told otherwise: the least likely in use.
REDIS_URL = "redis://127.0.0.1:6379/15"
LEFTOVERS = (b"_kombu.", b"celery", b"unacked", b"test:")
MOST_LEFTOVERS = 1000

CAN_TEST = """
    SELECT (rolcreatedb OR rolsuper)
       AND current_setting('server_version_num')::int >= %s
       AND current_setting('server_encoding') = 'UTF8'
    FROM pg_roles WHERE rolname = current_user
"""


def settings_nearby() -> dict[str, str]:
    """DATABASE_URL and REDIS_URL of usable servers; what is not there is left out."""
    found = {}
    if _postgres_is_usable(POSTGRES_URL):
        found["DATABASE_URL"] = POSTGRES_URL
    if _redis_is_usable(REDIS_URL):
        found["REDIS_URL"] = REDIS_URL
    return found


def _postgres_is_usable(url: str) -> bool:
    """Whether it lets us in without a password, is new enough and lets us create a database."""
    try:
        with psycopg.connect(url, connect_timeout=2) as connection:
            row = connection.execute(CAN_TEST, [OLDEST_POSTGRES]).fetchone()
    except psycopg.Error:
        return False
    return bool(row and row[0])


def _redis_is_usable(url: str) -> bool:
    """Whether it lets us in without a password and holds nothing but earlier runs' queues."""
    try:
        with redis.Redis.from_url(url, socket_timeout=2) as client:
            keys = list(islice(client.scan_iter(count=1000), MOST_LEFTOVERS + 1))
    except redis.RedisError:
        return False
    return len(keys) <= MOST_LEFTOVERS and all(key.startswith(LEFTOVERS) for key in keys)
