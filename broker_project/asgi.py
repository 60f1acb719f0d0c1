"""The ASGI entry point: `uvicorn broker_project.asgi:application`."""

import os
from concurrent.futures import ThreadPoolExecutor

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "broker_project.settings")

django = get_asgi_application()

# Django must be set up first.
from django.conf import settings  # noqa: E402

from broker_project.body_limit import BodyLimit  # noqa: E402
from broker_project.startup import refuse_wrong_settings  # noqa: E402
from tenants.handover import StreamHandover  # noqa: E402

application = BodyLimit(StreamHandover(django), settings.DATA_UPLOAD_MAX_MEMORY_SIZE)

# A server may import this module inside its event loop, where Django refuses the ORM.
with ThreadPoolExecutor(1) as thread:
    thread.submit(refuse_wrong_settings).result()
