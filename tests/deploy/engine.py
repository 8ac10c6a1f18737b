"""The Docker Engine that the tests find: its commands, what it says of a container, and the reboot of its host."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from tests.parts.ports import until

QUICK = 60.0
"""Seconds that a single command of the engine may take."""


class Failed(AssertionError):
    """A command that should have worked did not."""


def run(
    command: list[str], *, stdin: str = "", cwd: Path | None = None, within: float = QUICK, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """A command to its end, with what it said; with ``check`` a failure is the test's failure."""
    done = subprocess.run(
        command, input=stdin, cwd=cwd, capture_output=True, text=True, timeout=within, check=False, env=environment()
    )
    if check and done.returncode != 0:
        raise Failed(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return done


def environment() -> dict[str, str]:
    """Ours, without what would speak into the Compose files: those are told by .env alone."""
    ours = {name: text for name, text in os.environ.items() if not name.startswith(("MODELFORGE_", "COMPOSE_"))}
    return ours | {"DOCKER_BUILDKIT": "1", "COMPOSE_ANSI": "never", "BUILDKIT_PROGRESS": "plain"}


def docker(*arguments: str, stdin: str = "", within: float = QUICK, check: bool = True) -> str:
    """A docker command; what it printed."""
    return run(["docker", *arguments], stdin=stdin, within=within, check=check).stdout.strip()


def inspect(container: str) -> dict[str, Any]:
    """All that the engine says of a container."""
    (found,) = json.loads(docker("inspect", container))
    return dict(found)


def size_bytes(image: str) -> int:
    """What an image takes, with those that it is built on."""
    return int(docker("image", "inspect", image, "--format", "{{.Size}}"))


def give(folder: Path, as_seen: str) -> None:
    """Let a folder of the host belong to uid 10001, by the command that a container which sees it there tells."""
    chown = ("python:3.13-slim-trixie", "chown", "-R", "10001:10001", as_seen)
    docker("run", "--rm", "--volume", f"{folder}:{as_seen}", *chown)


def answers() -> bool:
    """Whether there is an engine."""
    return run(["docker", "version", "--format", "{{.Server.Version}}"], check=False).returncode == 0


def reboot(containers: list[str]) -> None:
    """What a reboot of the host does to these containers.

    An engine that runs from a folder of its own (the pid file lies beside its socket) is really ended and started
    again. Anybody else's is left alone: there the containers are killed and started in no order, as an engine does
    after a power cut.
    """
    pid_file = Path(os.environ.get("DOCKER_HOST", "").removeprefix("unix://")).with_name("dockerd.pid")
    if not pid_file.is_file():
        docker("kill", *containers)
        docker("start", *reversed(containers))
        return
    pid = int(pid_file.read_text())
    command = Path(f"/proc/{pid}/cmdline").read_bytes().decode().rstrip("\0").split("\0")
    os.kill(pid, signal.SIGTERM)
    until(lambda: not Path(f"/proc/{pid}").exists() or _is_zombie(pid), "the engine ends", within=90)
    pid_file.unlink(missing_ok=True)
    with pid_file.with_name("dockerd.log").open("ab") as log:
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    until(answers, "the engine is back", within=60, every=0.25)


def _is_zombie(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
