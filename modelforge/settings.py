"""Every setting of the control plane, read from the environment; docs/operating.md lists the variables."""

from datetime import timedelta
from pathlib import Path

from modelforge.environment import read
from modelforge.logs import FORMATS, LEVELS
from modelforge.pages import UNFOLD as UNFOLD

BASE_DIR = Path(__file__).resolve().parent.parent
env = read(BASE_DIR)

DEBUG = env.flag("MODELFORGE_DEBUG", False)
SECRET_KEY = env.secret("MODELFORGE_SECRET_KEY")
ALLOWED_HOSTS = env.hosts("MODELFORGE_ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
PUBLIC_URL = env.public_url("MODELFORGE_PUBLIC_URL", "http://localhost:8000")
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]

INSTALLED_APPS = [
    "unfold",
    "unfold.contrib.filters",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_filters",
    "axes",
    "nodes",
    "enrollment",
    "artifacts",
    "modelforge",
]

MIDDLEWARE = [
    "modelforge.requests.RequestMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "modelforge.urls"
WSGI_APPLICATION = "modelforge.wsgi.application"
APPEND_SLASH = False  # a redirect would turn an agent's POST into a GET
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

# Databases. The embedded SQLite file is the default; beats have a PostgreSQL connection of their own, whose commits
# are not waited for: a beat may be lost with the database, an audit row never.
DATABASES = {"default": env.database("MODELFORGE_DATABASE_URL", f"sqlite:///{env.var}/modelforge.sqlite3")}
BEATS_DATABASE = "default"
if DATABASES["default"]["ENGINE"].endswith("postgresql"):
    BEATS_DATABASE = "beats"
    DATABASES["beats"] = DATABASES["default"] | {
        "OPTIONS": DATABASES["default"]["OPTIONS"]
        | {"options": "-c synchronous_commit=off", "server_side_binding": True, "prepare_threshold": 1},
        "CONN_HEALTH_CHECKS": False,  # a third statement a beat; the first one after a restart hears 503 and comes back
        "TEST": {"MIRROR": "default"},
    }
DATABASE_ROUTERS: list[str] = []

CACHES = {"default": env.cache("MODELFORGE_REDIS_URL")}

# People.
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_VERBOSE = False
AXES_USERNAME_CALLABLE = "enrollment.people.login_name"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = 12 * 3600
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = PUBLIC_URL.startswith("https://")
TRUST_PROXY = env.flag("MODELFORGE_TRUST_PROXY", False)  # one proxy of ours stands before, and sets X-Forwarded-*
CLIENT_HEADER = env.header("MODELFORGE_CLIENT_HEADER", "X-Forwarded-For")
if TRUST_PROXY:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_HSTS_SECONDS = env.number("MODELFORGE_HSTS_SECONDS", 0)
SECURE_CONTENT_TYPE_NOSNIFF = True
SILENCED_SYSTEM_CHECKS = [
    "security.W005",  # HSTS for every subdomain and for the browsers' own list: the domain is the operator's to decide
    "security.W021",
    "security.W008",  # the proxy listens on TLS alone, and a redirect would turn an agent's POST into a GET
]
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CSRF_FAILURE_VIEW = "modelforge.handlers.csrf_failure"
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False
STATIC_URL = "/static/"
STATIC_ROOT = env.var / "static"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedStaticFilesStorage"},
}
WHITENOISE_USE_FINDERS = True

# REST.
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "enrollment.auth.AdminTokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["nodes.callers.IsReader"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_THROTTLE_CLASSES": ["modelforge.throttles.CallerThrottle"],
    "DEFAULT_THROTTLE_RATES": {
        "enroll": env.rate("MODELFORGE_ENROLL_RATE", "30/minute"),  # by address, failed attempts only
        "caller": env.rate("MODELFORGE_API_RATE", "1200/minute"),  # by credential or person
        "login": env.rate("MODELFORGE_LOGIN_RATE", "20/minute"),  # by address, failed logins only
        "stranger": env.rate("MODELFORGE_STRANGER_RATE", "60/minute"),  # by address, refused credentials only
    },
    "EXCEPTION_HANDLER": "modelforge.errors.handle",
    "URL_FORMAT_OVERRIDE": None,  # `?format=` belongs to the views that know it
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
NODE_AUTHENTICATION = "enrollment.auth.NodeAuthentication"
SPECTACULAR_SETTINGS = {
    "TITLE": "ModelForge",
    "DESCRIPTION": "Control plane for GPU servers. Errors are application/problem+json with a stable `code`.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.1",  # its null is what the wire types say
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SERVE_AUTHENTICATION": [],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_NAME_OVERRIDES": {
        "StorageRootState": "artifacts.models.StorageRoot.State",
        "JobState": "artifacts.models.Job.State",
        "ArtifactState": "artifacts.standing.STATES",
        "EnrollmentTokenState": ["open", "used", "expired", "revoked"],
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "modelforge.schema.add_wire_types",
    ],
}

# Celery does only short periodic work; modelforge/celery.py holds the schedule.
CELERY_BROKER_URL = env.broker("MODELFORGE_REDIS_URL", "filesystem://")
CELERY_TASK_IGNORE_RESULT = True
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TIMEZONE = "UTC"
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
if CELERY_BROKER_URL == "filesystem://":
    _QUEUE = str(env.path("MODELFORGE_QUEUE_DIR", env.var / "queue"))
    CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, object] = {
        "data_folder_in": _QUEUE,
        "data_folder_out": _QUEUE,
        "control_folder": _QUEUE,
    }
else:
    CELERY_BROKER_TRANSPORT_OPTIONS = {"socket_timeout": 10, "socket_connect_timeout": 5, "socket_keepalive": True}

# The fleet.
OPERATOR_API_KEY = env.secret("MODELFORGE_OPERATOR_API_KEY", minimum=32, required=False)
HARDWARE_REFRESH_ON_STARTUP = env.flag("MODELFORGE_HARDWARE_REFRESH_ON_STARTUP", False)
HEARTBEAT_INTERVAL = env.seconds("MODELFORGE_HEARTBEAT_INTERVAL_SECONDS", 15, least=1, most=3600)
MAX_HEARTBEATS_PER_SECOND = env.number("MODELFORGE_MAX_HEARTBEATS_PER_SECOND", 200, least=1)
TELEMETRY_INTERVAL = env.seconds("MODELFORGE_TELEMETRY_INTERVAL_SECONDS", 60, least=5, most=86400)
SWEEP_INTERVAL = env.seconds("MODELFORGE_SWEEP_INTERVAL_SECONDS", 5, least=1, most=60)
GAP_AFTER = env.seconds("MODELFORGE_GAP_SECONDS", 45, least=5, most=3600)
NODE_HISTORY_PER_HOUR = env.number("MODELFORGE_NODE_HISTORY_PER_HOUR", 240, least=1)
CREDENTIAL_MAX_AGE = env.seconds("MODELFORGE_CREDENTIAL_MAX_AGE", 90 * 86400, least=60, most=10 * 365 * 86400)

JOB_LEASE = env.seconds("MODELFORGE_JOB_LEASE_SECONDS", 300, least=1, most=86400)
LEASES_LOOKED_AT = min(timedelta(seconds=15), max(timedelta(seconds=1), JOB_LEASE / 4))
PARTIAL_GRACE = env.seconds("MODELFORGE_PARTIAL_GRACE_SECONDS", 86400, least=0, most=30 * 86400)

METRICS_PUBLIC = env.flag("MODELFORGE_METRICS_PUBLIC", False)  # /metrics without a credential

LOGGING_CONFIG = "modelforge.logs.configure"
LOGGING = {
    "level": env.choice("MODELFORGE_LOG_LEVEL", "INFO", LEVELS),
    "format": env.choice("MODELFORGE_LOG_FORMAT", "auto", FORMATS),
}
UNKNOWN_VARIABLES = env.unknown()  # told once, by modelforge.apps
