"""What ``make up`` does through the control plane's own acts: tables, the operator's account, this machine's node."""

import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connections
from django.db.models import QuerySet

from enrollment import admission, people
from modelforge import private
from modelforge.children import Child
from nodes.callers import SYSTEM, Role
from nodes.liveness import Liveness
from nodes.models import CredentialState, Node

FOLDERS = {
    "STATE_DIR": "state",
    "HF_CACHE_DIR": "hf-cache",
    "ARTIFACT_DIR": "artifacts",
    "QUARANTINE_DIR": "quarantine",
}
HUB = ("HF_ENDPOINT", "MODELFORGE_HF_TOKEN", "MODELFORGE_HF_TOKEN_FILE")
SHOWN = ("HF_ENDPOINT", "MODELFORGE_AGENT_HUB_CA_CERT_PATH")
"""Of the way to the Hub, what ``doctor`` needs in a shell to ask the same one; a proxy may hold a password."""
HUB_LIBRARYS_OWN = ("HF_", "HUGGING_FACE_")
"""A shell may hold a person's own token and settings: they are not this machine's."""
MANAGE = ".venv/bin/python manage.py"


@dataclass(frozen=True)
class Login:
    """How the operator gets in."""

    password: str  # "" where it is another than the one that make up knows
    held_back: str = ""  # why the login does not work, with the remedy


def prepare(password: str, username: str) -> Login:
    """Bring the tables up to date, and see to it that there is an operator."""
    call_command("migrate", verbosity=0, interactive=False)
    found = login(password, username)
    connections.close_all()
    return found


def login(password: str, username: str) -> Login:
    """Make the operator where there is none; one who stands is left as he is, and told only what works for him."""
    person = User.objects.filter(username=username).first()
    if person is None:
        people.create(username, password, Role.OPERATOR, by=SYSTEM, now=datetime.now(UTC))
        return Login(password)
    if not person.is_active:
        text = f"{username} was deactivated. Make another operator: {MANAGE} create_operator NAME"
        return Login(password if person.check_password(password) else "", text)
    if not person.check_password(password):
        return Login("", f"{username} has a password of its own. Forgotten? {MANAGE} changepassword {username}")
    return Login(password)


def agent(var: Path, url: str, root: Path, environ: Mapping[str, str]) -> Child | None:
    """The agent of this machine, enrolled where it is not; None where the control plane does not let it in.

    What it runs with is kept in agent/env, for a shell whose commands shall meet the same agent; no secret is in it.
    """
    home = var / "agent"
    settings = {name: text for name, text in environ.items() if not name.startswith(("MODELFORGE_", *HUB_LIBRARYS_OWN))}
    settings |= {name: text for name, text in environ.items() if name.startswith("MODELFORGE_AGENT_")}
    settings |= {name: environ[name] for name in HUB if name in environ}
    own = {f"MODELFORGE_AGENT_{name}": str(home / folder) for name, folder in FOLDERS.items()}
    own |= {
        "MODELFORGE_AGENT_CONTROL_PLANE_URL": url,
        "MODELFORGE_AGENT_RUN_DIR": str(home / "run"),
        "MODELFORGE_AGENT_ALLOW_EPHEMERAL_STATE": "true",
    }
    settings |= own
    for folder in FOLDERS.values():
        (home / folder).mkdir(parents=True, exist_ok=True, mode=0o700)
    shown = own | {name: environ[name] for name in SHOWN if name in environ}
    lines = [f"export {name}={shlex.quote(text)}\n" for name, text in shown.items()]
    private.write(home / "env", "# For a shell: . var/agent/env\n" + "".join(lines))
    command = [sys.executable, "-m", "agent"]
    if not _is_known(var) and not _enroll(command, settings, root):
        return None
    return Child("agent", [*command, "run"], settings, var / "log" / "agent.log", root)


def _enroll(command: list[str], settings: Mapping[str, str], root: Path) -> bool:
    """By a one-time token, as on any server; it travels by standard input."""
    invitation = admission.Invitation(display_name=socket.gethostname()[:255] or "this machine")
    _, token = admission.invite(invitation, by=SYSTEM, now=datetime.now(UTC))
    connections.close_all()
    done = subprocess.run(
        [*command, "enroll", "--token-file", "-"],
        input=token.encode(),
        env=dict(settings),
        cwd=root,
        capture_output=True,
        timeout=60,
    )
    if done.returncode != 0:
        sys.stderr.write(f"This machine's agent could not enroll:\n{done.stderr.decode(errors='replace')}\n")
        sys.stderr.write("The control plane stays up without it.\n")
    return done.returncode == 0


def _is_known(var: Path) -> bool:
    """Whether the agent's state names a node of this control plane that holds a credential."""
    state = var / "agent" / "state"
    held = any(os.path.exists(state / name) for name in ("node-credential", "node-credential.previous"))
    known = _this_node(var).exclude(credential_state=CredentialState.REVOKED).exists()
    connections.close_all()
    return held and known


def online(var: Path) -> bool:
    """Whether this machine's node is online and has told its facts."""
    return _this_node(var).filter(facts_at__isnull=False, heartbeat__liveness=Liveness.ONLINE).exists()


def held_back(var: Path) -> str:
    """Why an operator's word keeps this machine from being online, with the remedy; "" where none does."""
    node = _this_node(var).first()
    if node is not None and node.retired_at is not None:
        state = var / "agent" / "state"
        return f"This machine's node is retired. To enroll it as a new one, stop, remove {state}, and start again."
    if node is not None and not node.enabled:
        return "This machine's node is disabled; enable it on its page."
    return ""


def _this_node(var: Path) -> QuerySet[Node]:
    """The node whose id stands in the agent's state, if there is one."""
    try:
        id = UUID((var / "agent" / "state" / "node-id").read_text(encoding="ascii").strip())
    except (OSError, ValueError):
        return Node.objects.none()
    return Node.objects.filter(pk=id)
