"""Which model the demo chooses, against real servers on loopback."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from broker_project.local.practice_model.server import Server as PracticeServer
from broker_project.local.providers import PREFERRED, ChoiceError, choose, models_at
from llmbroker.catalog import aliases, providers

NOBODY = {"nobody": "http://127.0.0.1:9/v1"}

Serve = Callable[..., str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start a server that answers every GET with this body; its base URL."""
    running: list[tuple[ThreadingHTTPServer, threading.Thread]] = []

    def start(body: object, *, status: int = 200, key: str = "") -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                allowed = self.headers.get("Authorization", "") == (f"Bearer {key}" if key else "")
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status if allowed else 401)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: object) -> None: ...

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        running.append((server, thread))
        return f"http://127.0.0.1:{server.server_address[1]}/v1"

    yield start
    for server, thread in running:
        server.shutdown()
        thread.join()
        server.server_close()


def models(*names: str) -> dict[str, object]:
    return {"object": "list", "data": [{"id": name, "object": "model"} for name in names]}


def test_with_nothing_at_hand_it_is_the_practice_model() -> None:
    choice = choose({}, NOBODY)

    assert (choice.label, choice.model, choice.base_url) == (
        "Practice model",
        "practice-model",
        "",
    )


def test_a_key_in_the_environment_chooses_its_provider() -> None:
    choice = choose({"OPENAI_API_KEY": "sk-marker"}, NOBODY)

    assert choice.base_url == "https://api.openai.com/v1"
    assert (choice.key_ref, choice.key) == ("OPENAI_API_KEY", "sk-marker")
    assert choice.model == aliases()["gpt-mini"].model
    assert "sk-marker" not in repr(choice)


@pytest.mark.parametrize("provider", providers(), ids=lambda provider: provider.id)
def test_every_provider_of_the_catalog_can_be_chosen_by_its_key(provider: object) -> None:
    ref = getattr(provider, "api_key_ref", "")
    choice = choose({ref: "k"}, NOBODY)

    assert choice.key_ref == ref
    assert choice.model


def test_preferred_models_are_in_the_catalog() -> None:
    assert {alias for alias in PREFERRED.values() if alias} <= set(aliases())
    assert set(PREFERRED) <= {provider.id for provider in providers()}


def test_a_named_provider_and_model_win_over_other_keys() -> None:
    environ = {
        "OPENAI_API_KEY": "a",
        "GROQ_API_KEY": "b",
        "DEMO_PROVIDER": "groq",
        "DEMO_MODEL": "some/model",
    }
    choice = choose(environ, NOBODY)

    assert (choice.key, choice.model) == ("b", "some/model")


def test_a_named_provider_without_its_key_says_which_key_and_where_to_get_it() -> None:
    with pytest.raises(ChoiceError, match=r"GROQ_API_KEY.*https://console\.groq\.com"):
        choose({"DEMO_PROVIDER": "groq"}, NOBODY)


def test_an_unknown_provider_lists_those_there_are() -> None:
    with pytest.raises(ChoiceError, match=r"grok-ish is not known; there are openai, .*practice"):
        choose({"DEMO_PROVIDER": "grok-ish"}, NOBODY)


def test_the_practice_model_can_be_asked_for() -> None:
    choice = choose({"DEMO_PROVIDER": "practice", "OPENAI_API_KEY": "a"}, NOBODY)

    assert choice.model == "practice-model"


def test_a_server_on_a_usual_port_is_found_and_its_first_chat_model_taken(serve: Serve) -> None:
    servers = {**NOBODY, "Ollama": serve(models("nomic-embed-text", "llama3.2"))}

    choice = choose({}, servers)

    assert (choice.label, choice.base_url) == ("llama3.2 on Ollama", servers["Ollama"])
    assert choice.key_ref == ""


def test_a_provider_key_goes_before_a_server_nearby(serve: Serve) -> None:
    servers = {"Ollama": serve(models("llama3.2"))}

    assert choose({"GROQ_API_KEY": "k"}, servers).key_ref == "GROQ_API_KEY"
    assert choose({"GROQ_API_KEY": "k", "DEMO_PROVIDER": "local"}, servers).model == "llama3.2"


@pytest.mark.parametrize(
    "body",
    [b"<html>hello</html>", b"", {"data": "no list"}, [1], {"models": []}, b"\xff\xfe"],
)
def test_a_server_of_another_kind_is_no_model_server(serve: Serve, body: object) -> None:
    assert choose({}, {"vLLM": serve(body)}).model == "practice-model"


def test_a_server_that_wants_a_key_or_has_no_model_is_passed_over(serve: Serve) -> None:
    servers = {"vLLM": serve(models("m"), key="secret"), "Ollama": serve(models())}

    assert choose({}, servers).model == "practice-model"


def test_a_named_server_is_used_with_its_key(serve: Serve) -> None:
    base_url = serve(models("m"), key="secret")
    choice = choose({"DEMO_BASE_URL": base_url, "DEMO_API_KEY": "secret"}, NOBODY)

    assert (choice.base_url, choice.model, choice.key) == (base_url, "m", "secret")


def test_a_named_server_that_does_not_answer_is_an_error_that_says_so() -> None:
    with pytest.raises(ChoiceError, match="no OpenAI-compatible server answers there"):
        choose({"DEMO_BASE_URL": NOBODY["nobody"]}, NOBODY)
    named = {"DEMO_BASE_URL": NOBODY["nobody"], "DEMO_MODEL": "m"}
    assert choose(named, NOBODY).model == "m"


def test_local_asked_for_and_not_there_is_an_error_that_names_the_ports() -> None:
    with pytest.raises(ChoiceError, match=r"127\.0\.0\.1:9"):
        choose({"DEMO_PROVIDER": "local"}, NOBODY)


def test_the_practice_model_is_found_like_any_server() -> None:
    with PracticeServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        assert models_at(server.base_url) == ["practice-model"]
        server.shutdown()
        thread.join()
