from django.apps import AppConfig


class BrokerProjectConfig(AppConfig):
    """Registers the process's broker for the entry points of the apps."""

    name = "broker_project"

    def ready(self) -> None:
        """Nothing is built here: the factory is called by the first use."""
        from broker_project.broker import project_broker  # noqa: PLC0415
        from tenants.runtime import register_broker  # noqa: PLC0415

        register_broker(project_broker)
