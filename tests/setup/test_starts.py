"""Each process of the control plane, started by itself with a fault of the configuration: one line, exit code 78."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.parts.ports import free_port

ROOT = Path(__file__).parents[2]
CELERY = ("celery", "--quiet", "--app", "modelforge.celery")
COMMANDS = {
    "web": ("modelforge.web", "--port"),
    "worker": (*CELERY, "worker", "--pool", "solo"),
    "beat": (*CELERY, "beat"),
}


def start(command: tuple[str, ...], var: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A start that is expected to end by itself."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("MODELFORGE_", "DJANGO_"))}
    port = [str(free_port())] if command[-1] == "--port" else []
    return subprocess.run(
        [sys.executable, *command, *port],
        env=kept | {"MODELFORGE_VAR_DIR": str(var)} | variables,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


@pytest.mark.parametrize("process", COMMANDS)
@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("MODELFORGE_QUEUE_DIR", "/dev/null", "MODELFORGE_QUEUE_DIR: /dev/null is no folder that uid"),
        ("MODELFORGE_QUEUE_DIR", "/dev/null/a\nb", "MODELFORGE_QUEUE_DIR: /dev/null/a b is no folder that uid"),
        ("MODELFORGE_VAR_DIR", "/dev/null/var", "MODELFORGE_VAR_DIR: /dev/null/var is no folder that uid"),
        ("MODELFORGE_SECRET_KEY_FILE", "/nowhere/key", "MODELFORGE_SECRET_KEY_FILE names a file that cannot be read"),
    ],
    ids=["queue", "queue-of-two-lines", "var", "secret"],
)
def test_a_process_names_the_variable_and_ends(process: str, name: str, text: str, told: str, tmp_path: Path) -> None:
    done = start(("-m", *COMMANDS[process]), tmp_path / "var", **{name: text})
    assert (done.returncode, done.stdout) == (78, "")
    assert told in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("process", [*COMMANDS, "check"])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("MODELFORGE_DATABASE_URL", '"postgresql://u:topsecretpw@h/x"'),
        ("MODELFORGE_DATABASE_URL", "postgresql://u:topsecretpw/x@h/x"),
        ("MODELFORGE_REDIS_URL", "redis://:topsecretpw@h:abc/0"),
    ],
    ids=["quoted-database", "unescaped-database", "redis"],
)
def test_no_process_shows_the_secret_in_a_wrong_address(process: str, name: str, text: str, tmp_path: Path) -> None:
    command = ("-m", *COMMANDS[process]) if process in COMMANDS else ("manage.py", "check")
    done = start(command, tmp_path / "var", **{name: text})
    assert (done.returncode, done.stdout, len(done.stderr.strip().splitlines())) == (78, "", 1)
    assert done.stderr.startswith(f"{name} ")
    assert "percent-encode" in done.stderr
    assert "topsec" not in done.stderr


def test_make_up_shows_none_either(tmp_path: Path) -> None:
    wrong = '"postgresql://u:topsecretpw@h/x"'
    done = start(("-m", "modelforge.up"), tmp_path / "var", PORT=str(free_port()), MODELFORGE_DATABASE_URL=wrong)
    assert (done.returncode, len(done.stderr.strip().splitlines())) == (78, 1)
    assert done.stderr.strip().startswith("MODELFORGE_DATABASE_URL ")
    assert "topsec" not in done.stdout + done.stderr


def test_no_documented_variable_is_called_unknown(tmp_path: Path) -> None:
    """Redis is named, so that the queue of files is not looked at."""
    documented = set(re.findall(r"`(MODELFORGE_[A-Z_]+)[`=]", (ROOT / "docs" / "operating.md").read_text()))
    assert {"MODELFORGE_VENV", "MODELFORGE_DOMAIN", "MODELFORGE_QUEUE_DIR"} <= documented
    ask = "from modelforge import settings; print(settings.UNKNOWN_VARIABLES)"
    others = dict.fromkeys(documented, "") | {"MODELFORGE_REDIS_URL": "redis://127.0.0.1:1/0"}
    done = start(("-c", ask), tmp_path / "var", **others | {"MODELFORGE_VAR_DIR": str(tmp_path / "var")})
    assert done.stdout.strip() == "[]"
    done = start(("-c", ask), tmp_path / "var", MODELFORGE_VENVS="x", MODELFORGE_WHAT="x")
    assert done.stdout.strip() == "['MODELFORGE_VENVS (did you mean MODELFORGE_VENV?)', 'MODELFORGE_WHAT']"


def test_a_command_does_too_and_works_once_it_is_mended(tmp_path: Path) -> None:
    check = ("manage.py", "check")
    done = start(check, tmp_path / "var", MODELFORGE_QUEUE_DIR="/dev/null")
    assert (done.returncode, len(done.stderr.strip().splitlines())) == (78, 1)
    done = start(check, tmp_path / "var", MODELFORGE_QUEUE_DIR=str(tmp_path / "queue"))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("MODELFORGE_API_RATE", "fast", "such as 1200/minute"),
        ("MODELFORGE_LOGIN_RATE", "-5/fortnight", "such as 20/minute"),
        ("MODELFORGE_STRANGER_RATE", "1/", "such as 60/minute"),
        ("MODELFORGE_ENROLL_RATE", "0/minute", "such as 30/minute"),
        ("MODELFORGE_LOG_LEVEL", "LOUD", "say one of CRITICAL, "),
        ("MODELFORGE_LOG_FORMAT", "xml", "say one of auto, json, text"),
        ("MODELFORGE_HEARTBEAT_INTERVAL_SECONDS", "9" * 5000, "say a whole number from 1 to 3600"),
        ("MODELFORGE_PUBLIC_URL", "foo", "say https://modelforge.example"),
        ("MODELFORGE_ALLOWED_HOSTS", ",", "say names by comma"),
        ("MODELFORGE_ALLOWED_HOSTS", "http://x", "say names by comma"),
        ("MODELFORGE_REDIS_URL", "foo", "say redis://"),
        ("MODELFORGE_DATABASE_URL", "postgresql://127.0.0.1", "names no database"),
    ],
    ids=lambda said: said if isinstance(said, str) and said.startswith("MODELFORGE_") else "",
)
def test_a_wrong_variable_is_one_line_with_its_remedy(name: str, text: str, told: str, tmp_path: Path) -> None:
    done = start(("manage.py", "check"), tmp_path / "var", **{name: text})
    assert (done.returncode, done.stdout, len(done.stderr.strip().splitlines())) == (78, "", 1)
    assert done.stderr.startswith(f"{name} ")
    assert told in done.stderr
