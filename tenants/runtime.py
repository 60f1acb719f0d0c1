"""The process-wide broker, for entry points: views, tasks, commands. Services get it as argument.

Apps may not import broker_project, which builds the broker; so it registers a factory here
when Django starts, and the first use in a process opens the broker, after any fork.
"""

from collections.abc import Callable

from llmbroker import Broker

_factory: Callable[[], Broker] | None = None


def register_broker(factory: Callable[[], Broker]) -> None:
    """Say how this process gets its broker. Called once, by broker_project."""
    global _factory  # noqa: PLW0603 - one handle for one process is what this module is
    _factory = factory


def current_broker() -> Broker:
    """The broker of this process.

    Raises RuntimeError if Django has not been set up.
    """
    if _factory is None:
        raise RuntimeError(
            "no broker is registered: django.setup() has not run, or 'broker_project' is not in"
            " INSTALLED_APPS"
        )
    return _factory()
