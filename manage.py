#!/usr/bin/env python
"""Django's command line, with the embedded services where no others are named."""

import os
import sys

from django.core.management import execute_from_command_line

from broker_project.local.services import provide_services

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "broker_project.settings")
    provide_services()
    execute_from_command_line(sys.argv)
