"""What the agent says, and the secrets that it never says."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from agent import logs
from agent.logs import redact
from tests.agent.scripted import CREDENTIAL, TOKEN

SIGNED = "https://cdn.example/file?X-Amz-Signature=abcdef&X-Amz-Credential=me"


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, given back as it was."""
    logger = logging.getLogger()
    handlers, level = logger.handlers[:], logger.level
    yield logger
    logger.handlers[:] = handlers
    logger.setLevel(level)
    logging.captureWarnings(False)


@pytest.mark.parametrize(
    "secret",
    [
        TOKEN,
        CREDENTIAL,
        "mfk_h4ndle_" + "k" * 40 + "_12345678",
        "hf_AbCdEfGhIjKlMnOpQrStUv",
    ],
)
@pytest.mark.parametrize("around", ["{}", "token={}", "'{}'", "x {} y", '{{"a": "{}"}}', "Authorization: Bearer {}"])
def test_tokens_and_credentials_are_cut_out_wherever_they_stand(secret: str, around: str) -> None:
    assert secret[8:] not in redact(around.format(secret))


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Authorization: Bearer abc.def-123456789", "abc.def"),
        ("{'Authorization': 'Basic dXNlcjpwYXNz'}", "dXNlcjpwYXNz"),
        ("Proxy-Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ("X-ModelForge-Admin-Token: letmein", "letmein"),
        ("proxy http://user:p%40ss@proxy:3128/ failed", "p%40ss"),
        ("proxy http://onlyuser@proxy:3128/ failed", "onlyuser"),
        (f"GET {SIGNED} failed", "abcdef"),
    ],
)
def test_other_secrets_are_cut_out_by_where_they_stand(text: str, secret: str) -> None:
    assert secret in text
    assert secret not in redact(text)


@pytest.mark.parametrize(
    "text", ["https://modelforge.example/api/v1 answered 503", "mail me@example.org", "a basic test"]
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("form", ["json", "text"])
def test_no_secret_survives_in_message_arguments_extras_or_traceback(root: logging.Logger, form: str) -> None:
    """Field case 9."""
    out = io.StringIO()
    logs.set_up(level="debug", form=form, stream=out)
    try:
        raise ValueError(f"bad {CREDENTIAL}")
    except ValueError:
        root.exception("failed with %s", TOKEN, extra={"header": f"Bearer {CREDENTIAL}"})
    said = out.getvalue()
    assert "failed with" in said
    assert "ValueError" in said
    assert TOKEN[9:] not in said
    assert CREDENTIAL[9:] not in said


def test_json_is_one_object_a_line_with_the_extras(root: logging.Logger) -> None:
    out = io.StringIO()
    logs.set_up(level="info", form="auto", stream=out)  # no terminal, so JSON
    root.info("two\nlines", extra={"code": "node_disabled", "count": 3})
    (line,) = out.getvalue().splitlines()
    found = json.loads(line)
    assert found["message"] == "two\nlines"
    assert found["level"] == "info"
    assert (found["code"], found["count"]) == ("node_disabled", 3)


def test_a_terminal_gets_plain_text(root: logging.Logger) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    out = Terminal()
    logs.set_up(level="info", form="auto", stream=out)
    root.warning("hello", extra={"code": "dns"})
    assert out.getvalue().rstrip().endswith("warning hello  code=dns")


@pytest.mark.parametrize("form", ["json", "text"])
def test_nothing_that_is_logged_steers_a_terminal_or_passes_for_a_line_of_its_own(
    root: logging.Logger, form: str
) -> None:
    out = io.StringIO()
    logs.set_up(level="info", form=form, stream=out)
    evil = "\x1b[2J\x9b31m\u202e\r\n12:00:00 info    all is well"
    try:
        raise ValueError(evil)
    except ValueError:
        root.exception("it said %s", evil, extra={"code": evil})
    lines = out.getvalue().split("\n")
    assert all(line.isprintable() for line in lines)
    assert not any(line.startswith("12:00:00") for line in lines)
    assert "all is well" in lines[0]
