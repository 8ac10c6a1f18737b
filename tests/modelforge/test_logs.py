"""What is logged, and what never is."""

import json
import logging
import sys
from collections.abc import Iterator

import pytest
import structlog
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.test import Client
from django.utils.log import configure_logging

from modelforge import logs
from tests.parts.start import OPERATOR_API_KEY

SECRETS = [
    "mfe_4kq2w9_Zm9vYmFyYmF6cXV4cXV1eA_1a2b3c",
    "mfn_4kq2w9_Zm9v-YmFyYmF6cXV4_cXV1eA_1a2b3c",
    "mfk_abcdefgh_01234567890123456789_zzzzzz",
    OPERATOR_API_KEY,
]


@pytest.fixture
def written(capsys: pytest.CaptureFixture[str]) -> Iterator[pytest.CaptureFixture[str]]:
    """The log as the process writes it."""
    configure_logging(settings.LOGGING_CONFIG, {"level": "DEBUG", "format": "json"})
    yield capsys
    configure_logging(settings.LOGGING_CONFIG, settings.LOGGING)


@pytest.mark.parametrize("secret", SECRETS)
def test_no_secret_passes_in_a_message_an_argument_a_field_or_an_exception(
    secret: str, written: pytest.CaptureFixture[str]
) -> None:
    logging.getLogger("a").warning(f"said {secret}.")
    logging.getLogger("a").warning("said %s", secret)
    structlog.get_logger("b").warning("said", header=f"Bearer {secret}", deep={"in": [secret]})
    try:
        raise ValueError(f"cannot use {secret}")
    except ValueError:
        logging.getLogger("c").exception("failed")
    text = written.readouterr().err
    assert text.count("[secret]") >= 5
    assert secret not in text
    assert secret[4:16] not in text


def test_a_password_in_an_address_is_taken_out() -> None:
    said = logs.without_secrets("cannot reach postgresql://modelforge:hunter2@db:5432/modelforge")
    assert said == "cannot reach postgresql://modelforge:[secret]@db:5432/modelforge"


def test_an_address_without_a_password_stays() -> None:
    said = "see https://modelforge.example:8443/admin/ and mail ops@example"
    assert logs.without_secrets(said) == said


def test_a_line_is_one_json_object_with_the_request_id(written: pytest.CaptureFixture[str]) -> None:
    Client().get("/nowhere", headers={"X-Request-ID": "asked-2"})
    (line,) = [json.loads(text) for text in written.readouterr().err.splitlines() if "asked-2" in text]
    assert line["event"] == "request"
    assert (line["method"], line["path"], line["status"]) == ("GET", "/nowhere", 404)
    assert line["request_id"] == "asked-2"
    assert line["level"] == "info"
    assert line["timestamp"].endswith("Z")


def test_what_goes_well_and_often_is_not_told(written: pytest.CaptureFixture[str]) -> None:
    Client().get("/healthz")
    assert written.readouterr().err == ""


def test_the_query_is_not_told(written: pytest.CaptureFixture[str]) -> None:
    Client().get("/nowhere?token=hunter2")
    assert "hunter2" not in written.readouterr().err


def test_a_terminal_is_given_text(monkeypatch: pytest.MonkeyPatch, written: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    configure_logging(settings.LOGGING_CONFIG, {"level": "INFO", "format": "auto"})
    logging.getLogger("a").info("said %s", SECRETS[0])
    text = written.readouterr().err
    assert "[secret]" in text
    assert "{" not in text.replace("[secret]", "")
    assert SECRETS[0] not in text


@pytest.mark.parametrize(
    ("options", "name"),
    [({"level": "LOUD", "format": "json"}, "LOG_LEVEL"), ({"level": "INFO", "format": "xml"}, "LOG_FORMAT")],
)
def test_a_level_or_format_that_is_none_is_named(options: dict[str, str], name: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"MODELFORGE_{name}"):
        logs.configure(options)
