"""Settings, all from the environment; README lists them. A missing or wrong one fails loudly."""

import warnings
from datetime import timedelta
from pathlib import Path
from typing import Any

import dj_database_url
import django_stubs_ext
from django.core.exceptions import ImproperlyConfigured
from environs import Env, validate

from broker_project.local.services import provide_services

# Where DATABASE_URL or REDIS_URL names no server, an embedded one is started.
provide_services()

# Makes Django's classes subscriptable at run time, as their types are.
django_stubs_ext.monkeypatch()

env = Env()
BASE_DIR = Path(__file__).resolve().parent.parent

# A local trial (`make demo`, `make dev`, `make test`) makes its own secrets; see local/secrets.py.
LOCAL = env.bool("BROKER_LOCAL", default=False)
DEBUG = env.bool("DEBUG", default=False)


def _required(name: str, why: str) -> str:
    """The setting, or what the file holds that ``<name>_FILE`` names; lines count as commas."""
    value: str = env.str(name, default="")
    if not value and (path := env.str(f"{name}_FILE", default="")):
        try:
            lines = Path(path).read_text("utf-8").split()
        except (OSError, UnicodeDecodeError) as error:
            raise ImproperlyConfigured(f"{name}_FILE cannot be read: {error}") from None
        value = ",".join(lines)
    if not value:
        raise ImproperlyConfigured(f"{name} is not set: {why}")
    return value


def _database() -> Any:
    """Django's settings of DATABASE_URL; an error that does not repeat its password."""
    url = _required("DATABASE_URL", "PostgreSQL; e.g. postgres://user:password@host:5432/name")
    try:
        return dj_database_url.parse(url)
    except ValueError:
        raise ImproperlyConfigured(
            "DATABASE_URL is no database URL; it reads postgres://user:password@host:5432/name"
        ) from None


def _redis_url() -> str:
    url = _required("REDIS_URL", "Redis or Valkey carries Celery; e.g. redis://127.0.0.1:6379/0")
    if not url.startswith(("redis://", "rediss://")):
        raise ImproperlyConfigured(
            "REDIS_URL is no Redis URL; it reads redis://:password@host:6379/0 (rediss: TLS)"
        )
    return url


SECRET_KEY = _required(
    "SECRET_KEY",
    "a long random string; `python -m broker_project.local.secrets` prints one, and with"
    " BROKER_LOCAL=1 a local trial makes its own",
)
# Newest first, "id:base64 of 32 bytes", separated by commas. The first one encrypts. A key
# service stands in for them where BROKER_KEYRING names one: the path of a callable that gives it.
BROKER_KEYRING = env.str("BROKER_KEYRING", default="")
BROKER_ENCRYPTION_KEYS = (
    ""
    if BROKER_KEYRING
    else _required(
        "BROKER_ENCRYPTION_KEYS",
        "it encrypts the provider keys; `python -m broker_project.local.secrets` prints one",
    )
)
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS: list[str] = env.list("CSRF_TRUSTED_ORIGINS", default=[])

INSTALLED_APPS = [
    "unfold",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "axes",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "tenants",
    "journal",
    "agents",
    "broker_project",
]

UNFOLD = {"SITE_TITLE": "LLM broker", "SITE_HEADER": "LLM broker", "SITE_SYMBOL": "hub"}

MIDDLEWARE = [
    "broker_project.middleware.request_id",
    "broker_project.middleware.header_limits",
    "broker_project.middleware.security_headers",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "tenants.middleware.Walls",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "axes.middleware.AxesMiddleware",  # last: it answers for logins that were throttled
]

# Five wrong passwords for one name from one address lock that pair for a quarter of an hour; a
# name alone is never locked, or anybody could lock its owner out.
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_SENSITIVE_PARAMETERS = ["username", "ip_address"]
AXES_VERBOSE = False

# Served over TLS: all that browsers can be told about it. `manage.py check --deploy` asks for it.
HTTPS = env.bool("HTTPS", default=False)
SECURE_SSL_REDIRECT = SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_HSTS_SECONDS = 365 * 24 * 3600 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
# Set it only where a proxy that we run sets this header itself, and no client can.
if env.bool("BEHIND_PROXY", default=False):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
X_FRAME_OPTIONS = "DENY"

ROOT_URLCONF = "broker_project.urls"
ASGI_APPLICATION = "broker_project.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

DATABASES = {
    "default": {
        **_database(),
        "ENGINE": "tenants.db_backend",
        "CONN_HEALTH_CHECKS": True,
        # Threads of the engine and of the worker share few connections; see docs/decisions.md.
        "OPTIONS": {
            "pool": {
                "min_size": 0,
                "max_size": env.int("DATABASE_POOL_SIZE", default=20),
                # A database that is away must be noticed before callers give up.
                "timeout": env.float("DATABASE_POOL_TIMEOUT", default=5.0),
            }
        },
    }
}
# What requests and workers run as, whoever logs in; empty where that role itself logs in.
DATABASE_ROLE = env.str("DATABASE_ROLE", default="broker_app")
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = _redis_url()
CELERY_BROKER_URL = REDIS_URL
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
# Kombu's Redis pool has 10 connections unless told otherwise, and then loses acknowledgements.
# A ring that fails is made up for by the reaper, so it does not hold up whoever rings.
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "max_connections": 200,
    "visibility_timeout": 3600,
    "max_retries": 1,
    "interval_start": 0,
    "interval_step": 0.05,
    "interval_max": 0.1,
}
# Run by any one process: `celery -A broker_project beat`, or a worker with `-B`.
CELERY_BEAT_SCHEDULE = {
    "journal.retention": {"task": "journal.retention", "schedule": 86_400.0},
    "journal.add_up": {"task": "journal.add_up", "schedule": 60.0, "options": {"expires": 60}},
    "reap runs": {"task": "agents.reap_runs", "schedule": 2.0, "options": {"expires": 2}},
    "schedules": {"task": "agents.fire_schedules", "schedule": 5.0, "options": {"expires": 5}},
    "tenants.forget_idempotency_keys": {
        "task": "tenants.forget_idempotency_keys",
        "schedule": 3600.0,
    },
    "agents.retention": {"task": "agents.retention", "schedule": 86_400.0},
    "webhooks": {"task": "agents.deliver_webhooks", "schedule": 5.0, "options": {"expires": 5}},
}

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
# Without `collectstatic` the files are found where their packages keep them.
WHITENOISE_USE_FINDERS = not STATIC_ROOT.is_dir()
warnings.filterwarnings("ignore", message="No directory at: .*staticfiles")

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "tenants.authentication.AccessTokenAuthentication",
        "tenants.authentication.TenantSessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["tenants.permissions.HasPermission"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["tenants.parsers.StrictJSONParser"],
    "EXCEPTION_HANDLER": "broker_project.errors.exception_handler",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "UNICODE_JSON": True,
    "STRICT_JSON": True,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "LLM broker",
    "DESCRIPTION": "Provider keys of your own, background agents, and the journal of every call.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "broker_project.schema.lists_and_errors",
    ],
    "ENUM_NAME_OVERRIDES": {
        "CallStatus": "journal.models.STATUSES",
        "RunStatus": "agents.models.Run.Status",
        "StepStatus": "agents.models.Step.Status",
        "KeyStatus": "tenants.models.ProviderKey.Status",
    },
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
}
DATA_UPLOAD_MAX_MEMORY_SIZE = 4 * 1024 * 1024
HEADERS_MAX_COUNT, HEADERS_MAX_BYTES = 100, 32 * 1024

# Addresses that tenants give (endpoints, tools) must be public and https, but for the host names,
# addresses and networks named here. The demo and `make dev` allow all, to reach a model nearby.
BROKER_ALLOW_PRIVATE_ADDRESSES = env.bool("BROKER_ALLOW_PRIVATE_ADDRESSES", default=False)
BROKER_ALLOWED_ADDRESSES: list[str] = env.list("BROKER_ALLOWED_ADDRESSES", default=[])

# A call that never came back gives up what it had reserved of limits after this long.
BROKER_RESERVATION_SECONDS = env.int("BROKER_RESERVATION_SECONDS", default=900)
# What an answer is held to where a limit is in force and the caller has set none.
BROKER_UNCAPPED_ANSWER_TOKENS = env.int("BROKER_UNCAPPED_ANSWER_TOKENS", default=4096)

# The weather tool's public service (no key needed); tests point it at loopback.
WEATHER_API_URL = env.str("WEATHER_API_URL", default="https://wttr.in")
# Dotted paths of modules; the functions in their sequence TOOLS are tools of every tenant.
AGENT_PLUGINS = env.list("AGENT_PLUGINS", default=["agents.native_tools"])

# Days that runs are kept after their end where a tenant has no rule of its own; none: for ever.
RUN_DAYS = env.int("RUN_DAYS", default=None)

# Runs of one tenant that a worker process works on at once; how long one goes on, in seconds,
# while another tenant waits for its place; how long a worker that is stopped waits for models;
# how long a run whose models are all away waits for one.
RUNS_AT_ONCE = env.int("RUNS_AT_ONCE", default=1000, validate=validate.Range(min=1))
RUN_SLICE = env.float("RUN_SLICE", default=10.0)
RUN_HAND_OVER = env.float("RUN_HAND_OVER", default=5.0)
RUN_MODEL_PATIENCE = env.float("RUN_MODEL_PATIENCE", default=86_400.0)

# Where rows of the journal wait while the database is away, and how far new calls go on then.
JOURNAL_SPOOL_DIR = env.str("JOURNAL_SPOOL_DIR", default=str(BASE_DIR / ".data" / "spool"))
JOURNAL_SPOOL_MAX_BYTES = env.int("JOURNAL_SPOOL_MAX_BYTES", default=64 * 1024 * 1024)
JOURNAL_SPOOL_MAX_SECONDS = env.float("JOURNAL_SPOOL_MAX_SECONDS", default=300.0)
# Days that calls, and what they said, are kept where a tenant has no rule of its own.
JOURNAL_METADATA_DAYS = env.int("JOURNAL_METADATA_DAYS", default=None)
JOURNAL_PAYLOAD_DAYS = env.int("JOURNAL_PAYLOAD_DAYS", default=30)
# Longer than any call takes: an attempt that is open after it lost its process.
JOURNAL_LOST_AFTER_SECONDS = env.float("JOURNAL_LOST_AFTER_SECONDS", default=3600.0)

# Prometheus reads /metrics with this token; without one there is no such page.
METRICS_TOKEN = env.str("METRICS_TOKEN", default="")

LOG_LEVELS = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
LOG_FORMAT = env.str("LOG_FORMAT", default="line", validate=validate.OneOf(["line", "json"]))
LOG_LEVEL = env.str("LOG_LEVEL", default="INFO", validate=validate.OneOf(LOG_LEVELS))
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"},
        "json": {"()": "broker_project.logs.JSONFormatter"},
    },
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": LOG_FORMAT,
        }
    },
    "root": {"handlers": ["console"], "level": LOG_LEVEL},
}
