"""No piece of a key in any error, repr, log, traceback or journal row."""

from __future__ import annotations

import copy
import logging
import traceback

import pytest

import llmbroker
from tests.llmbroker.conftest import MakeBroker, model
from tests.support.model_server import ModelServer, Reply

MARKER = "sk-fake-7Hq2mZ0pTENANTA93xLw"
PIECES = [MARKER[start : start + 8] for start in range(len(MARKER) - 7)]


def shown_by(error: BaseException) -> str:
    """Everything a reporter that captures locals would collect about ``error``."""
    seen: list[str] = []
    pending: list[BaseException | None] = [error]
    while pending:
        each = pending.pop()
        if each is None:
            continue
        captured = traceback.TracebackException.from_exception(each, capture_locals=True)
        seen += [
            "".join(captured.format()),
            repr(each),
            str(each),
            repr(vars(each)),
            repr(each.args),
        ]
        pending += [each.__cause__, each.__context__]
    return "\n".join(seen)


def pieces_in(text: str) -> list[str]:
    return [piece for piece in PIECES if piece in text]


@pytest.mark.parametrize("status", [401, 404, 400, 500])
def test_a_key_that_a_provider_echoes_stays_out_of_errors_and_journal(
    server: ModelServer, make_broker: MakeBroker, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    body = b'{"error":{"message":"Incorrect API key provided: %s"}}' % MARKER.encode()
    server.answer_with(lambda request: Reply(status=status, body=body))
    broker = make_broker(model(server), secrets={"KEY": MARKER})

    with pytest.raises(llmbroker.LLMRequestError) as caught:
        broker.ask("hello", wait=0)

    # The call's own frames belong to the test, which knows the key; the error must not.
    assert pieces_in(str(caught.value) + repr(vars(caught.value))) == []
    assert pieces_in(repr(broker.calls())) == []
    assert pieces_in(caplog.text) == []


class Caller:
    """Makes a call whose frames hold no key of their own."""

    def __init__(self, broker: llmbroker.Broker) -> None:
        self.broker = broker

    def error(self) -> BaseException:
        """What the call raises."""
        try:
            self.broker.ask("hello", wait=0)
        except (llmbroker.LLMRequestError, ValueError) as error:
            return error
        raise AssertionError("the call succeeded")


@pytest.mark.parametrize(
    "key", [MARKER, f"{MARKER}\nX-Evil: 1", f"{MARKER}\u200b", f"{MARKER}\x00"], ids=repr
)
def test_no_traceback_with_locals_shows_a_key(make_broker: MakeBroker, key: str) -> None:
    dead = llmbroker.LLMConfig("dead", "http://127.0.0.1:9/v1", "m", "KEY")

    error = Caller(make_broker(dead, secrets={"KEY": key})).error()

    assert pieces_in(shown_by(error)) == []


def test_no_traceback_of_a_refused_key_shows_it(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    server.answer_with(lambda request: Reply(status=401, body=MARKER.encode()))
    error = Caller(make_broker(model(server), secrets={"KEY": MARKER})).error()
    assert pieces_in(shown_by(error)) == []


def test_what_holds_a_key_does_not_show_it() -> None:
    key = llmbroker.ApiKey("k1", MARKER)
    secrets = llmbroker.DictSecrets({"KEY": MARKER})
    for holder in (key, copy.copy(key), secrets, llmbroker.Broker(secrets=secrets)):
        assert pieces_in(repr(holder) + str(holder)) == []
