"""The tenant of the demo: made once, found again, with a model to call."""

import json
import secrets
import subprocess
import sys
from dataclasses import asdict, dataclass, field

from broker_project.local import parts
from broker_project.local.api import Api, ApiError
from broker_project.local.files import read_json, write_json
from broker_project.local.paths import ROOT, data_dir
from broker_project.local.providers import ModelChoice

SLUG = "demo"
OWNER = "demo@example.com"
LABEL = "make demo"


class CommandError(Exception):
    """A management command failed; the message is what it printed."""


@dataclass(frozen=True)
class Account:
    """Who the demo acts as."""

    slug: str
    email: str
    password: str = field(repr=False)
    token: str = field(repr=False)


def account(url: str) -> Account:
    """The account of the last demo if the server knows it, else a new one."""
    path = data_dir() / "demo.json"
    noted = read_json(path)
    if noted and Api(url, noted["token"]).knows_token():
        return Account(**noted)
    new = _new_account(noted.get("password") or secrets.token_urlsafe(9))
    write_json(path, asdict(new))
    return new


def run_command(*arguments: str) -> str:
    """Run one of Django's commands; its output."""
    command = [sys.executable, *parts.manage(*arguments)]
    done = subprocess.run(  # noqa: S603 - our own manage.py
        command, cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise CommandError(f"manage.py {arguments[0]} failed:\n{done.stdout}{done.stderr}".rstrip())
    return done.stdout


def offer(api: Api, choice: ModelChoice) -> None:
    """Have the tenant's runs call the chosen model: its endpoint, and its key if it needs one."""
    if choice.key:
        _store_key(api, choice)
    endpoint = {"base_url": choice.base_url, "model": choice.model, "api_key_ref": choice.key_ref}
    known = {row["name"]: row["id"] for row in api.get("endpoints?limit=200")["data"]}
    for name, endpoint_id in known.items():
        if name != choice.endpoint:
            api.patch(f"endpoints/{endpoint_id}", enabled=False)
    if choice.endpoint in known:
        api.patch(f"endpoints/{known[choice.endpoint]}", **endpoint, enabled=True)
    else:
        api.post("endpoints", name=choice.endpoint, weight=1.0, **endpoint)


def _store_key(api: Api, choice: ModelChoice) -> None:
    stored = [
        row["id"]
        for row in api.get("keys?limit=200")["data"]
        if row["ref"] == choice.key_ref and row["label"] == LABEL
    ]
    try:
        if stored:
            api.patch(f"keys/{stored[0]}", value=choice.key, status="active")
        else:
            api.post("keys", ref=choice.key_ref, value=choice.key, label=LABEL)
    except ApiError as error:
        if error.status != 409:  # this very value is stored already
            raise


def _new_account(password: str) -> Account:
    """A tenant of its own; under another name if this database has one whose token is lost."""
    try:
        return _create(SLUG, password)
    except CommandError as error:
        if f"There is a tenant {SLUG} already" not in str(error):
            raise
        return _create(f"{SLUG}-{secrets.token_hex(3)}", password)


def _create(slug: str, password: str) -> Account:
    output = run_command(
        *("create_tenant", slug, "--owner", OWNER, "--json", f"--admin-password={password}")
    )
    made = json.loads(output.strip().splitlines()[-1])
    return Account(slug, OWNER, password, made["token"])
