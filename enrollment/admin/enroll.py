"""Enroll a node: the form, and the token shown once with the lines to paste on the server."""

import shlex
from datetime import datetime, timedelta
from typing import Any, ClassVar
from urllib.parse import urlencode

from django import forms
from django.conf import settings
from django.http import HttpResponse
from django.urls import reverse

from enrollment import admission
from enrollment.admin.reached import only_from_here
from enrollment.admission import Invitation
from enrollment.models import EnrollmentToken
from nodes.admin.act_page import ActPage, Trail
from nodes.admin.form_once import Made
from nodes.admin.forms import LabelsField, choice, switch, text
from nodes.callers import Caller

LIFETIMES = [
    ("900", "15 minutes"),
    ("3600", "1 hour"),
    ("14400", "4 hours"),
    ("86400", "1 day"),
    ("604800", "7 days"),
]

INSTALL = "python3 -m venv .venv\n.venv/bin/pip install --require-hashes -r agent/requirements.txt"
RUN = ".venv/bin/python -m agent doctor\n.venv/bin/python -m agent run"


class InvitationForm(forms.Form):
    """What is said about a node that is to come."""

    display_name = text(
        "Display name", most=255, placeholder="server01", help_text="Left empty: the agent names itself."
    )
    role = text("Role", most=64, placeholder="primary-inference", help_text="Free text, for filters and schedulers.")
    labels = LabelsField(label="Labels")
    expires_in_seconds = choice("Valid for", LIFETIMES, initial="900", help_text="It works once, within this time.")
    production_eligible = switch("Production", "Leave off until the node has passed acceptance.")
    lab_eligible = switch("Lab")
    benchmark_eligible = switch("Benchmark")


class EnrollNode(ActPage):
    """Invite one node."""

    title = "Enroll node"
    button = "Create enrollment token"
    icon = "key"
    form_class: ClassVar[type[forms.Form]] = InvitationForm
    template = "modelforge/enroll.html"
    makes_secret = True
    effects = [
        "Makes a token for one server, shown once on the next page.",
        "Eligibility is metadata for schedulers: setting it launches nothing.",
    ]

    def find(self, key: Any) -> None:
        """There is no subject yet."""
        return

    def back(self, subject: Any) -> str:
        """The list of invitations."""
        return reverse("admin:enrollment_enrollmenttoken_changelist")

    def trail(self, subject: Any) -> Trail:
        """Compute nodes -> Enroll node, as the deployment document has it."""
        return [("Compute nodes", reverse("admin:nodes_node_changelist"))]

    def act(self, subject: Any, form: forms.Form, *, by: Caller, now: datetime) -> HttpResponse:
        """Make the token and show it once."""
        said = dict(form.cleaned_data)
        lifetime = timedelta(seconds=int(said.pop("expires_in_seconds")))
        token, secret = admission.invite(Invitation(lifetime=lifetime, **said), by=by, now=now)
        context = {
            "title": "Enrollment token",
            "trail": [
                *self.trail(subject),
                (self.title, reverse("admin:enrollment_enrollmenttoken_add")),
                ("Token", ""),
            ],
            "token": token,
            "secret": secret,
            "now": now,
            "install": INSTALL,
            "run": RUN,
            "exports": export_lines(token, secret),
            "env": env_lines(token, secret),
            "by_hand_first": only_from_here(),
            "plain_http": settings.PUBLIC_URL.startswith("http://"),
            "back": self.back(subject),
        }
        listed = f"{self.back(subject)}?{urlencode({'q': token.last_four})}"
        made = Made(str(token.pk), f"The token …{token.last_four}", listed)
        return self.secret_once("modelforge/enrolled.html", context, made=made)


def export_lines(token: EnrollmentToken, secret: str) -> str:
    """The environment of an agent that is started by hand from a checkout, for a POSIX shell."""
    folders = {"STATE": "state", "HF_CACHE": "hf-cache", "ARTIFACT": "artifacts", "QUARANTINE": "quarantine"}
    if only_from_here():
        folders["RUN"] = "run"  # beside the agent that already runs on the control plane's own machine
    said = {
        "CONTROL_PLANE_URL": settings.PUBLIC_URL,
        "ENROLLMENT_TOKEN": secret,
        "DISPLAY_NAME": " ".join(token.display_name.split()) or "name to show",
        "HOSTNAME": host_of(token) or "the-real-host-name",
        "TLS_VERIFY": "true",
    }
    lines = [f"export MODELFORGE_AGENT_{name}={shlex.quote(value)}" for name, value in said.items()]
    lines.append(f"mkdir -p ~/modelforge-data/{{{','.join(folders.values())}}}")
    lines += [f"export MODELFORGE_AGENT_{name}_DIR=~/modelforge-data/{folder}" for name, folder in folders.items()]
    return "\n".join(lines)


def host_of(token: EnrollmentToken) -> str:
    """A host name made of the display name."""
    name = " ".join(token.display_name.split()).lower()
    return "".join(c if c.isalnum() or c in "-." else "-" for c in name).strip("-.")


def env_lines(token: EnrollmentToken, secret: str) -> str:
    """The ``.env`` for the server, as the deployment document has it."""
    name, host = one_line(token.display_name), host_of(token)
    appdata = "/mnt/cache/appdata/modelforge-node-agent"
    lines = [
        f"MODELFORGE_AGENT_CONTROL_PLANE_URL={settings.PUBLIC_URL}",
        f"MODELFORGE_AGENT_ENROLLMENT_TOKEN={secret}",
        f"MODELFORGE_AGENT_DISPLAY_NAME={name or '<name to show>'}",
        f"MODELFORGE_AGENT_HOSTNAME={host or '<the real host name>'}",
        "MODELFORGE_AGENT_TLS_VERIFY=true",
        "MODELFORGE_AGENT_STATE_VOLUME=/mnt/user/appdata/modelforge-node-agent/state",
        f"MODELFORGE_AGENT_HF_CACHE_VOLUME={appdata}/hf-cache",
        f"MODELFORGE_AGENT_ARTIFACT_VOLUME={appdata}/artifacts",
        f"MODELFORGE_AGENT_QUARANTINE_VOLUME={appdata}/quarantine",
        "COMPOSE_FILE=docker-compose.node-agent.yml",
    ]
    return "\n".join(lines)


def one_line(name: str) -> str:
    """A display name as a value that Compose's ``.env`` reader takes literally."""
    plain = " ".join(name.split())
    special = set("#$'\"\\`")
    return "'" + plain.replace("\\", "\\\\").replace("'", "\\'") + "'" if special & set(plain) else plain
