"""Each process of the control plane, started by itself with a fault of the configuration: one line, exit code 78."""

import os
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
        ("MODELFORGE_VAR_DIR", "/dev/null/var", "MODELFORGE_VAR_DIR: /dev/null/var is no folder that uid"),
        ("MODELFORGE_SECRET_KEY_FILE", "/nowhere/key", "MODELFORGE_SECRET_KEY_FILE names a file that cannot be read"),
    ],
    ids=["queue", "var", "secret"],
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
    ],
    ids=["quoted-database", "unescaped-database"],
)
def test_no_process_shows_the_secret_in_a_wrong_address(process: str, name: str, text: str, tmp_path: Path) -> None:
    command = ("-m", *COMMANDS[process]) if process in COMMANDS else ("manage.py", "check")
    done = start(command, tmp_path / "var", **{name: text})
    assert (done.returncode, done.stdout, len(done.stderr.strip().splitlines())) == (78, "", 1)
    assert done.stderr.startswith(f"{name} ")
    assert "percent-encode" in done.stderr
    assert "topsec" not in done.stderr


def test_a_command_does_too_and_works_once_it_is_mended(tmp_path: Path) -> None:
    check = ("manage.py", "check")
    done = start(check, tmp_path / "var", MODELFORGE_QUEUE_DIR="/dev/null")
    assert (done.returncode, len(done.stderr.strip().splitlines())) == (78, 1)
    done = start(check, tmp_path / "var", MODELFORGE_QUEUE_DIR=str(tmp_path / "queue"))
    assert done.returncode == 0, done.stderr
