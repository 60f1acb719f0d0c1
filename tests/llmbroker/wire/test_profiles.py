"""Which profile an endpoint gets."""

from __future__ import annotations

import re

import pytest

from llmbroker.models import LLMConfig
from llmbroker.wire.profiles import PROFILES, origin_of, profile_of


def config(base_url: str, model: str = "m") -> LLMConfig:
    return LLMConfig("name", base_url, model, "KEY")


@pytest.mark.parametrize(
    ("base_url", "family"),
    [
        ("https://api.openai.com/v1", "openai"),
        ("https://acme.openai.azure.com/openai/v1", "openai"),
        ("https://api.anthropic.com/v1/", "anthropic"),
        ("https://generativelanguage.googleapis.com/v1beta/openai/", "gemini"),
        ("https://us-central1-aiplatform.googleapis.com/v1/projects/p", "gemini"),
        ("https://api.mistral.ai/v1", "mistral"),
        ("https://api.deepseek.com", "deepseek"),
        ("https://api.groq.com/openai/v1", "groq"),
        ("https://OpenRouter.ai/api/v1", "openrouter"),
        ("https://api.x.ai/v1", "xai"),
        ("http://10.0.0.7:8000/v1", "vllm"),
        ("http://localhost:11434/v1", "ollama"),
        ("http://127.0.0.1:8080/v1", "llamacpp"),
        ("https://llm.example.test/v1", "generic"),
        ("https://llm.example.test:8000/v1", "generic"),
        ("https://api.openai.com.evil.test/v1", "generic"),
        ("https://my-openrouter.ai/v1", "generic"),
    ],
)
def test_the_host_decides_and_else_the_port_of_a_server_next_door(
    base_url: str, family: str
) -> None:
    assert profile_of(config(base_url)).family == family


def test_every_family_named_in_the_plan_has_a_profile() -> None:
    assert PROFILES.keys() == {
        "openai", "anthropic", "gemini", "mistral", "deepseek", "groq", "openrouter", "xai",
        "vllm", "ollama", "llamacpp", "generic",
    }  # fmt: skip


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_the_ids_that_a_profile_makes_are_ids_that_it_accepts(profile) -> None:
    assert re.fullmatch(profile.tool_id, "a1" * 16) or re.fullmatch(
        profile.tool_id, ("a1" * 16)[: profile.tool_id_length]
    )


@pytest.mark.parametrize(
    "base_url", ["http://localhost:8000/v1", "https://openrouter.ai/api/v1", "https://x.test/v1"]
)
def test_a_mistral_model_wants_its_ids_wherever_it_is_served(base_url: str) -> None:
    profile = profile_of(config(base_url, "mistralai/Devstral-Small-2"))

    assert profile.tool_id == PROFILES["mistral"].tool_id
    assert profile.assistant_after_tools
    assert profile_of(config(base_url, "qwen/qwen3")).tool_id != profile.tool_id


def test_only_gemini_3_and_later_want_signatures() -> None:
    google = "https://generativelanguage.googleapis.com/v1beta/openai"

    assert profile_of(config(google, "gemini-3.1-pro-preview")).foreign_signature
    assert profile_of(config(google, "models/gemini-4-argon")).foreign_signature
    assert not profile_of(config(google, "gemini-2.5-flash")).foreign_signature


def test_the_origin_names_family_and_host_and_no_user() -> None:
    assert origin_of(config("https://api.deepseek.com/v1")) == "deepseek api.deepseek.com"
    assert origin_of(config("http://user:pw@localhost:8000/v1")) == "vllm localhost:8000"
