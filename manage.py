#!/usr/bin/env python
"""Django's command line."""

import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line
from django.db import OperationalError
from environs import EnvError

from broker_project.local.embedded import ServicesUnavailableError

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "broker_project.settings")
    try:
        execute_from_command_line(sys.argv)
    except (EnvError, ImproperlyConfigured, ServicesUnavailableError) as error:
        if "--traceback" in sys.argv:
            raise
        sys.exit(f"Error: {error}")  # a wrong setting: the sentence says what to do
    except OperationalError as error:
        if "--traceback" in sys.argv:
            raise
        sys.exit(f"Error: {error}\n`manage.py doctor` says whether PostgreSQL can be reached.")
