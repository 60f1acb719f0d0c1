"""``python -m llmbroker env | models | ask``: set up keys, see what they open, try it."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TextIO

from llmbroker import Broker, catalog
from llmbroker.environment import EnvironmentSecrets, environment_models
from llmbroker.errors import (
    LLMBrokerError,
    LLMRequestError,
    MissingKeyError,
    NoLLMAvailableError,
)
from llmbroker.models import LLMConfig
from llmbroker.text import storable

_DESCRIPTION = "Set up keys, see which models they open, and ask one."
_OWN_SERVER = """\
# An OpenAI-compatible server of your own, such as Ollama; the key may stay empty.
# LLMBROKER_BASE_URL=http://localhost:11434/v1
# LLMBROKER_MODEL=llama3.2
# LLMBROKER_API_KEY="""

_WHERE_KEYS_ARE = "`python -m llmbroker env` says where to get keys"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the result is the exit status."""
    options = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], Iterable[str]] = options.command
    try:
        for line in command(options):
            _write(sys.stdout, line)
        sys.stdout.flush()
    except (LLMRequestError, LLMBrokerError) as error:
        _write(sys.stderr, f"error: {_sentence(error)}")
        return 1
    except BrokenPipeError:
        # The reader (`| head`) has gone; what is still buffered must not fail at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        return 130
    return 0


def env_template(options: argparse.Namespace) -> Iterator[str]:
    """The lines of a .env file to fill in."""
    sections = {
        "pool": ("The free pool", catalog.pool_list()),
        "paid": ("Paid models, called by alias", catalog.paid_list()),
    }
    yield "# Keys for llmbroker: fill in those you have, the others may stay empty."
    asked: set[str] = set()
    for name in [options.section] if options.section else sections:
        title, models = sections[name]
        yield f"\n# --- {title} ---"
        for provider in models.providers.values():
            if provider.api_key_ref not in asked:
                yield from _key_lines(provider, models)
                asked.add(provider.api_key_ref)
    if options.section != "paid":
        yield f"\n{_OWN_SERVER}"


def list_models(options: argparse.Namespace) -> Iterator[str]:
    """What can be called, and what is still missing for it."""
    present = asyncio.run(EnvironmentSecrets().refs())
    yield from _section("Pool", _pool(options.registry), present)
    yield from _section("By alias", catalog.aliases().values(), present)
    yield f"{_WHERE_KEYS_ARE}."


def ask(options: argparse.Namespace) -> Iterator[str]:
    """The answer to one prompt."""
    prompt = _standard_input() if options.prompt == "-" else options.prompt
    if not prompt.strip():
        raise LLMBrokerError("the prompt is empty")
    with Broker(options.registry) as broker:
        if options.model:
            yield broker.direct(options.model).ask(prompt).text
        else:
            yield broker.ask(prompt, operation=options.operation).text


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m llmbroker", description=_DESCRIPTION)
    commands = parser.add_subparsers(required=True, metavar="command")

    env = commands.add_parser("env", help="print a .env file to fill in, with where to get keys")
    env.add_argument("section", nargs="?", choices=["pool", "paid"], help="only these keys")
    env.set_defaults(command=env_template)

    models = commands.add_parser("models", help="list the models and which keys are there")
    models.set_defaults(command=list_models)

    question = commands.add_parser("ask", help="ask a model and print its answer")
    question.add_argument("prompt", help='the prompt; "-" reads it from standard input')
    which = question.add_mutually_exclusive_group()
    which.add_argument("--model", metavar="ALIAS", help="this very model instead of the pool")
    which.add_argument("--operation", help="the kind of task: ratings are kept apart by it")
    question.set_defaults(command=ask)

    for command in (models, question):
        command.add_argument("--registry", metavar="FILE", help="a model list of your own (TOML)")
    return parser


def _pool(registry: str | None) -> list[LLMConfig]:
    if registry is not None:
        return catalog.load_models(registry)
    return [*environment_models(), *catalog.pool()]


def _standard_input() -> str:
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise LLMBrokerError(f"standard input is no text in {error.encoding}") from error


def _key_lines(provider: catalog.Provider, models: catalog.ModelList) -> Iterator[str]:
    served = [entry.config for entry in models.entries if entry.provider == provider.id]
    names = ", ".join(config.alias or config.model for config in served)
    yield f"# {provider.label}: {names}"
    yield from (f"#   {line}" for line in provider.key_help.splitlines())
    yield f"{provider.api_key_ref}="


def _section(title: str, configs: Iterable[LLMConfig], present: frozenset[str]) -> Iterator[str]:
    yield f"{title}:"
    for config in configs:
        name = config.alias or config.name
        yield f"  {name:<30} {config.model:<42} {_key_state(config.api_key_ref, present)}"


def _key_state(ref: str, present: frozenset[str]) -> str:
    if not ref:
        return "needs no key"
    return f"{ref} is set" if ref in present else f"{ref} is missing"


def _sentence(error: Exception) -> str:
    text = " ".join(str(error).split())
    no_key = isinstance(error, MissingKeyError) or (
        isinstance(error, NoLLMAvailableError) and error.reason == "no_keys"
    )
    return f"{text}; {_WHERE_KEYS_ARE}" if no_key else text


def _write(stream: TextIO, line: str) -> None:
    # A model may answer what this terminal's encoding has no character for.
    encoding = stream.encoding or "utf-8"
    print(storable(line).encode(encoding, "replace").decode(encoding), file=stream)


if __name__ == "__main__":
    sys.exit(main())
