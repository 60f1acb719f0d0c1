"""The app that joins the others."""

from django.apps import AppConfig


class BrokerProjectConfig(AppConfig):
    """Registers what the apps may not import: the process's broker, the journal's calls."""

    name = "broker_project"

    def ready(self) -> None:
        """Nothing is built here: the factory is called by the first use."""
        from agents.run_calls import register_run_calls  # noqa: PLC0415
        from broker_project.broker import project_broker  # noqa: PLC0415
        from broker_project.run_calls import calls_of_run  # noqa: PLC0415
        from tenants.runtime import register_broker  # noqa: PLC0415

        register_broker(project_broker)
        register_run_calls(calls_of_run)
