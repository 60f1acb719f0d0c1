"""The two secrets that every installation needs: `python -m broker_project.local.secrets`."""

import base64
import secrets
import sys
from pathlib import Path

from broker_project.local.files import locked, read_json, write_json

FILE_NAME = "local-secrets.json"


def new_secrets() -> dict[str, str]:
    """Values for SECRET_KEY and BROKER_ENCRYPTION_KEYS that nobody has seen before."""
    key = base64.b64encode(secrets.token_bytes(32)).decode()
    return {
        "SECRET_KEY": secrets.token_urlsafe(50),
        "BROKER_ENCRYPTION_KEYS": f"k{secrets.token_hex(3)}:{key}",
    }


def local_secrets(folder: Path) -> dict[str, str]:
    """This checkout's own secrets, made once: what they encrypted must stay readable."""
    path = folder / FILE_NAME
    with locked(folder / "secrets.lock"):
        if not path.exists():
            write_json(path, new_secrets())
        path.chmod(0o600)
        return read_json(path)


def main() -> None:
    """Print both as lines of an environment file."""
    for name, value in new_secrets().items():
        sys.stdout.write(f"{name}={value}\n")


if __name__ == "__main__":
    main()
