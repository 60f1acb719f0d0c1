"""Placeholder until the embedded services land."""


def provide_services() -> None:
    """Make DATABASE_URL and REDIS_URL point at running servers."""
