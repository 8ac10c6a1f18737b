"""`make up` beside other programs and under rude treatment: clear lines, and no process left behind."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.parts.ports import free_port, until
from tests.parts.up import Up

ROOT = Path(__file__).parents[2]


def start(var: Path, port: int | str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A start that is expected to end by itself."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("MODELFORGE_")}
    return subprocess.run(
        [sys.executable, "-m", "modelforge.up"],
        env=kept | {"MODELFORGE_VAR_DIR": str(var), "PORT": str(port)} | variables,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_port_in_use_is_named_with_another_to_try(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        done = start(tmp_path, port)
    assert done.returncode == 1
    assert f"Port {port} on 127.0.0.1 cannot be opened" in done.stderr
    assert f"make up PORT={port + 1}" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "up.json").exists()


@pytest.mark.parametrize("port", ["http", "0", "70000", "-1"])
def test_a_port_that_is_none_is_refused(port: str, tmp_path: Path) -> None:
    done = start(tmp_path, port)
    assert done.returncode == 1
    assert "say a number from 1 to 65535" in done.stderr


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("MODELFORGE_OPERATOR_API_KEY", "hunter2", "MODELFORGE_OPERATOR_API_KEY has 7 characters"),
        ("MODELFORGE_OPERATOR_API_KEY_FILE", "/nowhere/key", "names a file that cannot be read"),
        ("MODELFORGE_SWEEP_INTERVAL_SECONDS", "often", "say a whole number from 1 to 60"),
        ("MODELFORGE_QUEUE_DIR", "/dev/null/queue", "MODELFORGE_QUEUE_DIR: /dev/null/queue is no folder that"),
        ("MODELFORGE_DATABASE_URL", "sqlite:////dev/null/x", "MODELFORGE_DATABASE_URL: /dev/null is no folder that"),
    ],
)
def test_a_fault_of_the_configuration_is_one_line(name: str, text: str, told: str, tmp_path: Path) -> None:
    done = start(tmp_path, free_port(), **{name: text})
    assert done.returncode == 78
    assert told in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert "hunter2" not in done.stdout + done.stderr


@pytest.mark.parametrize("name", ["static", "log"])
def test_a_file_in_the_way_of_what_make_up_keeps_is_one_line(name: str, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    done = start(tmp_path, free_port())
    assert done.returncode == 78
    assert f"MODELFORGE_VAR_DIR: {tmp_path / name} is no folder" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_database_that_is_not_there_is_told_without_a_traceback(tmp_path: Path) -> None:
    done = start(tmp_path, free_port(), MODELFORGE_DATABASE_URL=f"postgresql://u@127.0.0.1:{free_port()}/modelforge")
    assert done.returncode == 69
    assert "The database cannot be used" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.walk
@pytest.mark.timeout(300)
def test_one_folder_has_one_control_plane_and_its_sudden_death_leaves_no_process_behind(tmp_path: Path) -> None:
    up = Up([sys.executable, "-m", "modelforge.up"], ROOT, tmp_path / "var", free_port())
    try:
        up.told()
        second = start(tmp_path / "var", free_port())
        assert second.returncode == 1
        assert "is up already" in second.stderr
        family = up.family()
        assert len(family) >= 5  # web and its workers, worker and its scheduler, agent
        os.kill(up.supervisor.pid, signal.SIGKILL)
        until(lambda: not [child for child in family if _lives(child)], "all children ended")
    finally:
        up.end()


def _lives(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
