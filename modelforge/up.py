"""``make up``: the whole control plane and one real agent on this machine, in the foreground."""

import fcntl
import json
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import IO

from modelforge import address, private
from modelforge.address import fail

try:
    import django
    import requests
    from django.conf import settings
    from django.core.exceptions import ImproperlyConfigured
    from django.db import OperationalError
except ImportError as fault:
    fail(f"{fault}: the environment is damaged. Make it anew with: make clean && make up")

from modelforge.children import Child
from modelforge.environment import VAR, folder

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 90.0  # seconds for everything to be healthy
USERNAME = "admin"
EXIT_UNAVAILABLE, EXIT_CONFIG = 69, 78


class Stop(Exception):
    """Ctrl-C or SIGTERM."""


def main() -> int:
    """Start, tell, watch, end."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    os.umask(0o077)  # what is kept in var/ is nobody else's
    var = Path(os.environ.get("MODELFORGE_VAR_DIR") or ROOT / "var").absolute()
    children: list[Child] = []
    try:
        lock = _alone(var)
        host, port = address.free()
        url = f"http://{address.name(host)}:{port}"
        _settle_environment(var, url, host)
        _say("Preparing the database")
        django.setup()
        from modelforge import first_start  # noqa: PLC0415 - needs the settings that the lines above made

        login = first_start.prepare(_before(var).get("password") or secrets.token_urlsafe(12), USERNAME)
        children += _processes(var, host, port)
        _say("Starting web and worker")
        for child in children:
            child.start()
        _wait(children, lambda: _ready(url), "the control plane is ready")
        _say("Starting the agent of this machine")
        agent = first_start.agent(var, url, ROOT, os.environ)
        if agent is not None:
            children.append(agent)
            agent.start()
            if held_back := first_start.held_back(var):
                _say(held_back)
            else:
                _wait(children, lambda: first_start.online(var), "this machine is online as a node")
        told = {"url": url, "admin_token": settings.OPERATOR_API_KEY, "username": USERNAME}
        told |= {"password": login.password} if login.password else {}
        _keep(var / "up.json", told)
        _tell(told, var, login.held_back)
        _watch(children)
    except Stop:
        _say("\nStopping")
        return 0
    except ImproperlyConfigured as fault:
        fail(str(fault), EXIT_CONFIG)
    except OperationalError as fault:
        fail(f"The database cannot be used: {fault}".strip(), EXIT_UNAVAILABLE)
    except ImportError as fault:
        fail(f"{fault}: the environment is damaged. Make it anew with: make clean && make up")
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # a second Ctrl-C must not leave children behind
        for child in reversed(children):
            child.stop()
    lock.close()
    return 0


def _stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    raise Stop


def _say(text: str) -> None:
    print(text, flush=True)


def _alone(var: Path) -> IO[str]:
    """One control plane per folder."""
    try:
        var.mkdir(parents=True, exist_ok=True)
        lock = (var / "up.lock").open("a+")
    except OSError as fault:
        fail(f"{var} cannot be written: {fault.strerror}. Mend its rights, or set MODELFORGE_VAR_DIR.", EXIT_CONFIG)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        fail(f"This folder's control plane is up already; its address and login stand in {var / 'up.json'}.")
    return lock


def _settle_environment(var: Path, url: str, host: str) -> None:
    """The variables of the control plane's processes: what the operator set, else what fits this machine."""
    environ = os.environ
    environ["MODELFORGE_VAR_DIR"] = str(var)
    environ["DJANGO_SETTINGS_MODULE"] = "modelforge.settings"
    environ.setdefault("MODELFORGE_PUBLIC_URL", url)
    environ.setdefault(
        "MODELFORGE_ALLOWED_HOSTS", f"localhost,127.0.0.1,[::1],{socket.gethostname()},{address.name(host)}"
    )
    for name in ("static", "log"):
        folder(VAR, var / name)
    if environ.get("MODELFORGE_OPERATOR_API_KEY") or environ.get("MODELFORGE_OPERATOR_API_KEY_FILE"):
        return
    kept = var / "admin-token"
    if not kept.exists():
        private.write(kept, secrets.token_urlsafe(32) + "\n")
    environ["MODELFORGE_OPERATOR_API_KEY_FILE"] = str(kept)


def _processes(var: Path, host: str, port: int) -> list[Child]:
    """Web, worker and scheduler, each a child of its own, so that whichever dies is noticed and started again."""
    web = ["modelforge.web", "--host", host, "--port", str(port)]
    celery = ["celery", "--quiet", "--app", "modelforge.celery"]
    worker = [*celery, "worker", "--pool", "solo"]
    worker += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    commands = {"web": web, "worker": worker, "scheduler": [*celery, "beat"]}
    # The Hub's token is the agent's alone.
    environment = {name: text for name, text in os.environ.items() if not name.startswith("MODELFORGE_HF_TOKEN")}
    return [
        Child(name, [sys.executable, "-m", *command], environment, var / "log" / f"{name}.log", ROOT)
        for name, command in commands.items()
    ]


def _ready(url: str) -> bool:
    try:
        return requests.get(f"{url}/readyz", timeout=5, proxies={"http": ""}).status_code == 200
    except requests.RequestException:
        return False


def _wait(children: list[Child], seen: Callable[[], bool], what: str) -> None:
    """Until it is seen; a child that dies meanwhile ends the wait with the end of its log."""
    deadline = time.monotonic() + PATIENCE
    while not seen():
        for child in children:
            if child.died is not None:
                last = "\n".join(child.log.read_text(errors="replace").splitlines()[-15:])
                fail(f"{last}\n\n{child.name} ended with exit code {child.died}; its log is {child.log}.")
        if time.monotonic() > deadline:
            fail(f"After {PATIENCE:g} s it is not so that {what}. Look into {children[0].log.parent}/*.log.")
        time.sleep(0.1)


def _watch(children: list[Child]) -> None:
    """Start again what dies; where it keeps dying, end all."""
    while True:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        for child in children:
            code = child.died
            if code is None:
                continue
            _say(f"{datetime.now(UTC):%H:%M:%S} {child.name} ended with exit code {code}; its log is {child.log}.")
            if not child.start_again():
                fail(f"{child.name} keeps ending; stopping everything.")
            _say(f"{child.name} was started again.")


def _before(var: Path) -> dict[str, str]:
    """What an earlier start told."""
    try:
        told = json.loads((var / "up.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}


def _keep(path: Path, told: dict[str, str]) -> None:
    private.write(path, json.dumps(told, indent=2) + "\n")


def _tell(told: dict[str, str], var: Path, held_back: str) -> None:
    login = held_back or f"Login        {told['username']}\n  Password     {told['password']}"
    _say(
        f"""
ModelForge is up.

  Address      {told["url"]}/admin/
  {login}
  Admin token  {told["admin_token"]}

These are kept in {var / "up.json"}; the logs are in {var / "log"}. Ctrl-C stops everything.
For this machine's agent (status, health, doctor), in another terminal: . {var / "agent" / "env"}
"""
    )


if __name__ == "__main__":
    sys.exit(main())
