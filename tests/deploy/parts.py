"""The two things that are deployed: the control plane's stack, and the agent of one GPU server."""

import json
from pathlib import Path
from typing import Any

from tests.deploy import engine
from tests.deploy.engine import docker
from tests.deploy.server import Server
from tests.deploy.site import Site
from tests.parts.ports import free_port, until

NAME = "modelforge.test"
"""No DNS knows it: the agents are told its address by the private-CA overlay, the tests know it themselves."""
BEAT_SECONDS = 3
PASSWORD = "a long password of the deployment's tests"
OPERATOR = "mara"

AGENT_FILES = (
    "docker-compose.node-agent.yml",
    "docker-compose.node-agent.private-ca.yml",
    "docker-compose.node-agent.no-gpu.yml",
)
PLAIN_AGENT_FILES = (AGENT_FILES[0], AGENT_FILES[2])


class Stack:
    """The base stack, up from nothing."""

    def __init__(self, folder: Path, **variables: str) -> None:
        port = free_port()
        self.server = Server(
            folder / "control-plane",
            ("docker-compose.yml",),
            **{
                "MODELFORGE_DOMAIN": NAME,
                "MODELFORGE_HTTPS_PORT": str(port),
                "MODELFORGE_PUBLIC_URL": f"https://{NAME}:{port}",
                "MODELFORGE_HEARTBEAT_INTERVAL_SECONDS": str(BEAT_SECONDS),
                "MODELFORGE_MAX_HEARTBEATS_PER_SECOND": "70",  # a thousand agents beat every 15 seconds, as by default
                "MODELFORGE_TELEMETRY_INTERVAL_SECONDS": "5",
                "MODELFORGE_SWEEP_INTERVAL_SECONDS": "1",
                # As far from the beats as the defaults are: a node is stale no sooner than we notice our own absence.
                "MODELFORGE_GAP_SECONDS": str(3 * BEAT_SECONDS),
                **variables,
            },
        )
        self.site = Site(NAME, port, folder / "ca.crt")

    def up(self) -> "Stack":
        """The one command; then the CA's public certificate and the admin token, as the documentation fetches them."""
        self.server.compose("up", "-d", "--build", "--wait")
        ca = self.server.compose("exec", "-T", "proxy", "cat", "/data/caddy/pki/authorities/local/root.crt")
        self.site.ca.write_text(ca + "\n")
        self.site.ca.chmod(0o644)
        self.site.admin_token = self.server.compose("exec", "-T", "web", "cat", "/run/modelforge/keys/operator-api-key")
        return self

    def manage(self, *arguments: str, stdin: str = "") -> str:
        """``manage.py`` in the stack."""
        return self.server.compose("exec", "-T", "web", "python", "manage.py", *arguments, stdin=stdin)

    def invite(self, name: str = "server01", **more: Any) -> str:
        """An enrollment token, by REST as the documentation makes one."""
        body = {"expires_in_seconds": 900, "display_name": name, "role": "primary-inference"} | more
        return str(self.site.api("POST", "admin/node-enrollments", body)["token"])

    def node(self, id: str) -> dict[str, Any]:
        """What readers are told of a node."""
        return dict(self.site.api("GET", f"hardware/nodes/{id}"))

    def is_ready(self) -> bool:
        """Whether /readyz says so."""
        told = self.site.ready()
        return told is not None and bool(told["ready"])


class NodeAgent:
    """The agent of one server, by the documentation's commands."""

    def __init__(self, folder: Path, stack: Stack, files: tuple[str, ...] = AGENT_FILES, **variables: str) -> None:
        self.stack = stack
        self.server = Server(
            folder,
            files,
            **{
                "MODELFORGE_AGENT_CONTROL_PLANE_URL": stack.site.url,
                "MODELFORGE_AGENT_DISPLAY_NAME": "Server 01",
                "MODELFORGE_AGENT_HOSTNAME": "server01",
                "MODELFORGE_AGENT_TLS_VERIFY": "true",
                "MODELFORGE_AGENT_CA_CERT_PATH": str(stack.site.ca),
                "MODELFORGE_AGENT_CONTROL_PLANE_HOST_ALIAS": NAME,
                "MODELFORGE_AGENT_CONTROL_PLANE_HOST_ADDRESS": "host-gateway",
                "MODELFORGE_AGENT_PARK_SECONDS": "2",
                **variables,
            },
        )

    def up(self, *arguments: str) -> "NodeAgent":
        """The documentation's command."""
        self.server.compose("up", "-d", "--build", *arguments)
        return self

    def join(self, name: str = "server01", **invitation: Any) -> "NodeAgent":
        """Invited, up and online; the token leaves .env, as the documentation asks."""
        self.server.write(MODELFORGE_AGENT_ENROLLMENT_TOKEN=self.stack.invite(name, **invitation))
        self.up()
        self.wait_online()
        self.server.write(MODELFORGE_AGENT_ENROLLMENT_TOKEN=None)
        return self

    @property
    def container(self) -> str:
        """Its container's id, running or not."""
        (found,) = self.server.containers("node-agent", everything=True)
        return found

    @property
    def node_id(self) -> str:
        """Who it is; "" before it knows."""
        return self.status().get("node_id") or ""

    def status(self) -> dict[str, Any]:
        """What ``status --json`` says in the container; nothing while that does not run."""
        code, told, _ = self.server.tried("exec", "-T", "node-agent", "modelforge-agent", "status", "--json", within=30)
        return dict(json.loads(told)) if code == 0 and told.startswith("{") else {}

    def wait_online(self, within: float = 60) -> dict[str, Any]:
        """The node as the control plane tells it, once that heard this agent."""

        def seen() -> dict[str, Any] | None:
            id = self.node_id
            if not id:
                return None
            nodes = self.stack.site.api("GET", "hardware/nodes?page_size=200")["results"]
            return next((node for node in nodes if node["id"] == id and node["liveness"] == "online"), None)

        found = until(seen, "the agent is online", within=within, every=0.5)
        assert isinstance(found, dict)
        return found

    def health(self) -> int:
        """The exit code of the health check, now."""
        return self.server.tried("exec", "-T", "node-agent", "modelforge-agent", "health")[0]

    def python(self, code: str) -> str:
        """What a few lines of Python print in the running container."""
        return self.server.compose("exec", "-T", "node-agent", "python", "-", stdin=code)

    def log(self) -> str:
        """All that it said."""
        return self.server.logs("node-agent")

    def says(self, text: str, within: float = 60) -> None:
        """Wait until the log holds it."""
        until(lambda: text in self.log(), f"the agent says {text!r}", within=within, every=0.5)

    def wait_ended(self, within: float = 60) -> int:
        """The exit code of its first end, whatever the restart policy did since."""
        code = until(self._ended, "the agent ends", within=within, every=0.1)
        assert isinstance(code, int)
        return code

    def _ended(self) -> int | None:
        """Not 0, for a container that is just starting again shows that."""
        state = engine.inspect(self.container)["State"]
        return int(state["ExitCode"]) or None

    def files(self, folder: str) -> list[str]:
        """What lies in a folder of the container."""
        return sorted(docker("exec", self.container, "ls", "-A", folder).split())
