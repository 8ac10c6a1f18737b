"""Logs: JSON lines in production, human text on a terminal, never a secret."""

import contextlib
import logging
import logging.config
import re
import sys
from typing import Any

import structlog
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from structlog.typing import Processor

FORMATS = ("auto", "json", "text")
LEVELS = tuple(logging.getLevelNamesMapping())

_SECRET = re.compile(r"(mf[enk]_)[A-Za-z0-9_-]{6,}")
_BEARER = re.compile(r"(?i)(bearer\s+)[^\s'\",]{8,}")
_USERINFO = re.compile(r"(://[^:/@\s'\"]*:)[^@/\s'\"]+(@)")
_GONE = "[secret]"

_SHARED: list[Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.stdlib.PositionalArgumentsFormatter(),
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
]


class SafeFormatter(structlog.stdlib.ProcessorFormatter):
    """Formats a line, and then takes every secret out of it, wherever it stood: message, field or exception."""

    def __init__(self, *, literals: tuple[str, ...], **options: Any) -> None:
        super().__init__(**options)
        self._literals = literals

    def format(self, record: logging.LogRecord) -> str:
        """The finished line."""
        return without_secrets(super().format(record), self._literals)


class StderrHandler(logging.Handler):
    """Writes to standard error as it is when the line is written."""

    def emit(self, record: logging.LogRecord) -> None:
        """One line; one that cannot be written is lost, for Python's own complaint would show it with its secrets."""
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(self.format(record) + "\n")
            sys.stderr.flush()


class Crashes(logging.Filter):
    """Lets only exceptions through: an answered refusal, 503 too, stands in the request's own line."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is one."""
        return bool(record.exc_info)


def without_secrets(text: str, literals: tuple[str, ...] = ()) -> str:
    """The text without enrollment tokens, credentials, API keys, bearer tokens, passwords in URLs, and ``literals``."""
    text = _SECRET.sub(rf"\1{_GONE}", text)
    text = _BEARER.sub(rf"\1{_GONE}", text)
    text = _USERINFO.sub(rf"\1{_GONE}\2", text)
    for literal in literals:
        text = text.replace(literal, _GONE)
    return text


_STEPS: list[Processor] = [
    structlog.stdlib.filter_by_level,
    *_SHARED,
    structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
]
"""One list for the whole process: a logger that is in use already keeps the one that it began with."""


def configure(options: dict[str, Any]) -> None:
    """Django's ``LOGGING_CONFIG``: ``options`` name the level, and json, text or auto (text on a terminal)."""
    level, kind = str(options["level"]).upper(), str(options["format"]).lower()
    if level not in logging.getLevelNamesMapping():
        raise ImproperlyConfigured(f"MODELFORGE_LOG_LEVEL is {level!r}; say DEBUG, INFO, WARNING or ERROR.")
    if kind not in FORMATS:
        raise ImproperlyConfigured(f"MODELFORGE_LOG_FORMAT is {kind!r}; say one of {', '.join(FORMATS)}.")
    literals = tuple(text for text in (settings.OPERATOR_API_KEY, settings.SECRET_KEY) if text)
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {
                "safe": {
                    "()": SafeFormatter,
                    "literals": literals,
                    "foreign_pre_chain": _SHARED,
                    "processors": _rendering(kind == "text" or (kind == "auto" and sys.stderr.isatty())),
                }
            },
            "filters": {"crashes": {"()": Crashes}},
            "handlers": {"stderr": {"()": StderrHandler, "formatter": "safe"}},
            "root": {"handlers": ["stderr"], "level": level},
            "loggers": {
                "django.request": {"level": "ERROR", "filters": ["crashes"]},
                "django.security.DisallowedHost": {"level": "CRITICAL"},
                "axes": {"level": "WARNING"},
                "celery": {"level": max(level, "INFO", key=_rank)},
                "celery.app.trace": {"level": "WARNING"},  # a sweep every few seconds is no news
                "celery.beat": {"level": "WARNING"},
                "celery.worker.strategy": {"level": "WARNING"},
                "kombu": {"level": "ERROR"},
            },
        }
    )
    structlog.configure(
        processors=_STEPS,
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def _rank(name: str) -> int:
    return logging.getLevelNamesMapping()[name]


def _rendering(human: bool) -> list[Processor]:
    if human:
        plain = structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
        return [structlog.stdlib.ProcessorFormatter.remove_processors_meta, plain]
    return [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        structlog.processors.format_exc_info,
        structlog.processors.JSONRenderer(default=str),
    ]
