"""Which model the demo calls: one that is named, or whose key is set, or that runs nearby."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from broker_project.local import practice_model
from broker_project.local.json_http import UnreachableError, send_json
from llmbroker.catalog import Provider, aliases, key_help, pool_list, providers

LOCAL, PRACTICE = "local", "practice"
USUAL_SERVERS = {
    "Ollama": "http://127.0.0.1:11434/v1",
    "LM Studio": "http://127.0.0.1:1234/v1",
    "vLLM": "http://127.0.0.1:8000/v1",
    "llama.cpp": "http://127.0.0.1:8080/v1",
}
PROBE_SECONDS = 0.5

# Which key wins where several are set, and a model that is quick, cheap and good with tools.
# Providers that are not named come after these, with the best of their free models.
PREFERRED = {
    "openai": "gpt-mini",
    "anthropic": "haiku",
    "google": "flash",
    "groq": None,
    "openrouter": None,
    "deepseek": "deepseek-flash",
    "mistral": "mistral-medium",
    "xai": "grok",
    "moonshot": "kimi",
    "zai": "glm-flash",
    "cerebras": "gpt-oss",
}
OTHER_NAMES = {"GEMINI_API_KEY": ("GOOGLE_API_KEY",)}


class ChoiceError(Exception):
    """The options name something that is not there; the message says what to do."""


@dataclass(frozen=True)
class ModelChoice:
    """A model to call, and whose it is. Without a base URL it is the practice model."""

    label: str
    endpoint: str
    model: str
    base_url: str = ""
    key_ref: str = ""
    key: str = field(default="", repr=False)


def choose(environ: Mapping[str, str], servers: Mapping[str, str] = USUAL_SERVERS) -> ModelChoice:
    """The demo's model by DEMO_PROVIDER, DEMO_BASE_URL and DEMO_MODEL, else the first at hand."""
    wanted = environ.get("DEMO_PROVIDER", "").strip().lower()
    model = environ.get("DEMO_MODEL", "").strip()
    if wanted == PRACTICE:
        return _practice()
    if base_url := environ.get("DEMO_BASE_URL", "").strip():
        return _named_server(base_url, model, environ.get("DEMO_API_KEY", "").strip())
    if wanted == LOCAL:
        return _required_local(servers, model)
    if wanted:
        return _required_provider(environ, wanted, model)
    return (
        _with_a_key(environ, _known_providers(), model)
        or _running_nearby(servers, model)
        or _practice()
    )


def models_at(base_url: str, *, key: str = "", timeout: float = PROBE_SECONDS) -> list[str] | None:
    """The models of an OpenAI-compatible server; None if there is no such server."""
    try:
        answer = send_json("GET", f"{base_url.rstrip('/')}/models", token=key, timeout=timeout)
    except UnreachableError:
        return None
    listed = answer.body.get("data") if isinstance(answer.body, dict) else None
    if answer.status != 200 or not isinstance(listed, list):
        return None
    return [row["id"] for row in listed if isinstance(row, dict) and isinstance(row.get("id"), str)]


def _practice() -> ModelChoice:
    return ModelChoice(practice_model.NAME, practice_model.MODEL, practice_model.MODEL)


def _named_server(base_url: str, model: str, key: str) -> ModelChoice:
    if not model:
        listed = models_at(base_url, key=key, timeout=5)
        if listed is None:
            raise ChoiceError(
                f"DEMO_BASE_URL={base_url}: no OpenAI-compatible server answers there"
                " (GET /models). Start it, or name its model with DEMO_MODEL."
            )
        model = _first_chat_model(listed) or ""
    if not model:
        raise ChoiceError(f"DEMO_BASE_URL={base_url} lists no model; name one with DEMO_MODEL.")
    ref = "DEMO_API_KEY" if key else ""
    return ModelChoice(f"{model} at {base_url}", "demo-server", model, base_url, ref, key)


def _required_local(servers: Mapping[str, str], model: str) -> ModelChoice:
    found = _running_nearby(servers, model)
    if found is None:
        tried = ", ".join(f"{name} ({url})" for name, url in servers.items())
        raise ChoiceError(f"DEMO_PROVIDER=local: none with a model answers of {tried}.")
    return found


def _running_nearby(servers: Mapping[str, str], model: str) -> ModelChoice | None:
    with ThreadPoolExecutor(len(servers)) as pool:
        listings = list(pool.map(models_at, servers.values()))
    for (name, base_url), listed in zip(servers.items(), listings, strict=True):
        chosen = _first_chat_model(listed or ())
        if chosen is not None:
            chosen = model or chosen
            return ModelChoice(f"{chosen} on {name}", "local-server", chosen, base_url)
    return None


def _first_chat_model(listed: Iterable[str]) -> str | None:
    return next((model for model in listed if "embed" not in model.lower()), None)


def _known_providers() -> list[Provider]:
    order = list(PREFERRED)
    last = len(order)
    return sorted(
        providers(), key=lambda known: order.index(known.id) if known.id in order else last
    )


def _required_provider(environ: Mapping[str, str], wanted: str, model: str) -> ModelChoice:
    named = [known for known in _known_providers() if known.id == wanted]
    if not named:
        known = ", ".join([*(known.id for known in _known_providers()), LOCAL, PRACTICE])
        raise ChoiceError(f"DEMO_PROVIDER={wanted} is not known; there are {known}.")
    choice = _with_a_key(environ, named, model)
    if choice is None:
        ref = named[0].api_key_ref
        raise ChoiceError(f"DEMO_PROVIDER={wanted} needs {ref} in the environment. {key_help(ref)}")
    return choice


def _with_a_key(
    environ: Mapping[str, str], candidates: Sequence[Provider], model: str
) -> ModelChoice | None:
    for provider in candidates:
        chosen = model or _default_model(provider.id)
        if chosen and (key := _key(environ, provider.api_key_ref)):
            return ModelChoice(
                f"{chosen} at {provider.label} ({provider.api_key_ref})",
                f"demo-{provider.id}",
                chosen,
                provider.base_url,
                provider.api_key_ref,
                key,
            )
    return None


def _key(environ: Mapping[str, str], ref: str) -> str:
    names = (ref, *OTHER_NAMES.get(ref, ()))
    return next((key for name in names if (key := environ.get(name, "").strip())), "")


def _default_model(provider: str) -> str | None:
    if alias := PREFERRED.get(provider):
        return aliases()[alias].model
    rows = [entry.config for entry in pool_list().entries if entry.provider == provider]
    return max(rows, key=lambda row: row.weight).model if rows else None
