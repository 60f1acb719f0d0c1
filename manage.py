#!/usr/bin/env python
"""Django's command line, with the embedded services where no others are named."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "broker_project.settings")
    from broker_project.local.services import provide_services

    provide_services()
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
