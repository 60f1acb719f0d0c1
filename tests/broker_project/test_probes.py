"""/healthz, /readyz, /metrics, and log lines as JSON."""

import json
import logging

import pytest

from broker_project.logs import JSONFormatter, request_id
from llmbroker.attribution import attributed


def test_healthz_asks_nobody(client):
    assert client.get("/healthz").json() == {"status": "ok"}


@pytest.mark.django_db
def test_readyz_asks_the_database_and_redis(client):
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["database"], answer.json()["redis"]) == (
        200,
        "ok",
        "ok",
    )


@pytest.mark.django_db
def test_readyz_says_what_is_away(client, settings):
    settings.REDIS_URL = "redis://:a-password@127.0.0.1:9/0"
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json() == {"status": "away", "database": "ok", "redis": "away"}


class TestMetrics:
    def test_are_for_the_bearer_of_the_token(self, client, settings):
        settings.METRICS_TOKEN = "let me in"
        answer = client.get("/metrics", headers={"Authorization": "Bearer let me in"})
        assert answer.status_code == 200
        assert b"llmbroker_attempts_total" in answer.content

    @pytest.mark.parametrize("given", ["", "Bearer ", "Bearer wrong", "Bearer ключ"])
    def test_are_hidden_from_everybody_else(self, client, settings, given):
        settings.METRICS_TOKEN = "let me in"
        assert client.get("/metrics", headers={"Authorization": given}).status_code == 404

    def test_are_nowhere_without_a_token(self, client):
        answer = client.get("/metrics", headers={"Authorization": "Bearer "})
        assert answer.status_code == 404


class TestALogLine:
    def line(self, message="hello %s", *args, exc_info=None):
        record = logging.LogRecord("a.b", logging.WARNING, "f", 1, message, args, exc_info)
        return json.loads(JSONFormatter().format(record))

    def test_is_one_object(self):
        line = self.line("hello %s\n\x00", "you")
        assert (line["level"], line["logger"], line["message"]) == (
            "WARNING",
            "a.b",
            "hello you\n␀",
        )
        assert "run" not in line

    def test_says_whose_request_and_run_it_was(self):
        token = request_id.set("req_1")
        with attributed(run="r1", step=2):
            line = self.line("x")
        request_id.reset(token)
        assert (line["request_id"], line["run"], line["step"]) == ("req_1", "r1", 2)

    def test_tells_what_went_wrong(self):
        with pytest.raises(ValueError, match="no number") as caught:
            int("no number")
        line = self.line("x", exc_info=(caught.type, caught.value, caught.tb))
        assert "ValueError: invalid literal" in line["exception"]
