from django.apps import AppConfig


class BrokerProjectConfig(AppConfig):
    name = "broker_project"
