"""One journey through the whole product at its most talkative, in which every kind of secret is issued and used."""

import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
import requests

from agent import protocol, wire
from tests.canary import evidence
from tests.canary.browser import Browser
from tests.canary.evidence import Evidence
from tests.parts.agents import Agent
from tests.parts.control_plane import ADMIN_TOKEN, POSTGRES, ControlPlane
from tests.parts.ports import until
from tests.parts.proxy import FINE, Fault, Proxy, always

OPERATOR_PASSWORD = "canary-yellow-operator-4711"
AUDITOR_PASSWORD = "canary-yellow-auditor-4712"
PROXY_PASSWORD = "canaryProxyPassword4713"
HF_TOKEN = "hf_canaryTokenOfTheHub4714abcdefghijkl"
DATABASE_PASSWORD = "canaryDatabasePassword4715"


@dataclass
class Walked:
    """What the journey left behind."""

    plane: ControlPlane
    agents: list[Agent]
    found: Evidence
    pages: set[str]


@pytest.fixture(scope="package")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walked]:
    """The journey, walked once for all searches."""
    folder = tmp_path_factory.mktemp("canary")
    (folder / "plane").mkdir()
    plane = ControlPlane(folder / "plane")
    if POSTGRES:  # it trusts everybody on this machine, with whatever password
        address = plane.environment["MODELFORGE_DATABASE_URL"]
        plane.environment["MODELFORGE_DATABASE_URL"] = address.replace("@", f":{DATABASE_PASSWORD}@")
    proxy = Proxy(plane.port)
    agents = [Agent(folder / name, plane.url) for name in ("by-file", "by-proxy")]
    try:
        yield _Journey(plane.start(), proxy, *agents).walk()
    finally:
        for agent in agents:
            agent.end()
        proxy.close()
        plane.remove()


class _Journey:
    def __init__(self, plane: ControlPlane, proxy: Proxy, by_file: Agent, by_proxy: Agent) -> None:
        self.plane, self.proxy, self.by_file, self.by_proxy = plane, proxy, by_file, by_proxy
        self.found = Evidence()
        self.found.secrets = {
            "admin token": ADMIN_TOKEN,
            "operator's password": OPERATOR_PASSWORD,
            "auditor's password": AUDITOR_PASSWORD,
            "proxy's password": PROXY_PASSWORD,
            "Hub token": HF_TOKEN,
            "secret key": plane.environment["MODELFORGE_SECRET_KEY"],
        }
        if POSTGRES:
            self.found.secrets["database's password"] = DATABASE_PASSWORD
        self.browser = Browser(plane.url, self.found.keep)

    def walk(self) -> Walked:
        self.people()
        self.api_keys()
        self.servers()
        self.credentials()
        self.mistakes()
        self.trouble()
        self.readers()
        pages = self.browser.walk()
        self.commands()
        return Walked(self.plane, [self.by_file, self.by_proxy], self.found, pages)

    def rest(self, method: str, path: str, body: Any = None, **options: Any) -> requests.Response:
        """By REST with the admin token, unless other headers say otherwise."""
        return self.found.keep(f"{method} {path}", self.plane.call(method, path, body, **options))

    def agents_word(self, method: str, path: str, secret: str, body: Any) -> requests.Response:
        """As an agent with this secret."""
        headers = {
            "Authorization": f"Bearer {secret}",
            protocol.VERSION_HEADER: "1",
            "Content-Type": "application/json",
        }
        answer = requests.request(
            method, self.plane.url + path, data=wire.encode(body), headers=headers, timeout=20, proxies={"http": ""}
        )
        return self.found.keep(f"{method} {path}", answer)

    def shown(self, name: str, kind: str) -> str:
        """The secret that the page just kept shows once."""
        text = re.search(rf"{kind}_[0-9A-Za-z]{{12}}_[0-9A-Za-z]{{43}}_[0-9A-Za-z]{{6}}", self.found.answers[-1][1])
        assert text is not None, self.found.answers[-1]
        return self.found.issue(name, text[0])

    def people(self) -> None:
        made = self.plane.manage("create_operator", "olga", "--password-file", "-", stdin=OPERATOR_PASSWORD)
        assert made.returncode == 0, made.stderr
        self.found.said["create_operator"] = made.stdout + made.stderr
        assert self.browser.log_in("olga", "a wrong password").status_code == 200
        assert self.browser.log_in("olga", OPERATOR_PASSWORD).status_code == 302
        self.browser.send("/admin/auth/user/add/", name="anna", role="auditor", password=AUDITOR_PASSWORD)

    def api_keys(self) -> None:
        self.browser.send("/admin/enrollment/apikey/add/", name="nightly", role="operator", days="90")
        self.operator_key = self.shown("operator's API key", "mfk")
        made = self.plane.manage("create_api_key", "report", "--role", "auditor")
        assert made.returncode == 0, made.stderr
        self.auditor_key = self.found.secrets["auditor's API key"] = made.stdout.strip()
        self.found.said["create_api_key"] = made.stderr

    def servers(self) -> None:
        answer = self.rest("POST", "/api/v1/admin/node-enrollments", {"display_name": "by file"})
        token = self.found.issue("enrollment token by REST", answer.json()["token"])
        kept = self.by_file.folder / "token"
        kept.write_text(token)
        self.by_file.environment["MODELFORGE_AGENT_ENROLLMENT_TOKEN_FILE"] = str(kept)
        hub = self.by_file.folder / "hub-token"
        hub.write_text(HF_TOKEN)
        self.by_file.environment["MODELFORGE_HF_TOKEN_FILE"] = str(hub)

        fields = {"display_name": "by page", "role": "", "labels": "", "expires_in_seconds": "900"}
        self.browser.send("/admin/enrollment/enrollmenttoken/add/", **fields)
        self.token = self.shown("enrollment token by page", "mfe")
        self.by_proxy.environment |= {
            "MODELFORGE_AGENT_ENROLLMENT_TOKEN": self.token,
            "MODELFORGE_AGENT_PROXY": self.proxy.url.replace("http://", f"http://agent:{PROXY_PASSWORD}@"),
            "MODELFORGE_HF_TOKEN": HF_TOKEN,
        }
        for agent in (self.by_file, self.by_proxy):
            agent.start()
            until(partial(self.online, agent), f"{agent.folder.name} is online")
            self.found.secrets[f"credential of {agent.folder.name}"] = agent.credential

    def online(self, agent: Agent) -> bool:
        """Whether its node is online with its facts told."""
        node = self.plane.call("GET", f"/api/v1/hardware/nodes/{agent.node_id}").json()
        return node.get("liveness") == "online" and node.get("facts") is not None

    def credentials(self) -> None:
        node = f"/api/v1/admin/nodes/{self.by_file.node_id}"
        answer = self.rest("POST", f"{node}/credential/rotate", {"reason": "as every spring"})
        rotated = self.found.issue("credential by rotation", answer.json()["credential"])
        assert self.by_file.command("credential", "set", stdin=rotated).returncode == 0
        until(lambda: not self.plane.node(self.by_file.node_id)["rotation_pending"], "the rotation is over")
        answer = self.agents_word("POST", protocol.CREDENTIAL, rotated, {})
        renewed = self.found.issue("credential by renewal", answer.json()["credential"])
        assert self.by_file.command("credential", "set", stdin=renewed).returncode == 0
        until(lambda: not self.plane.node(self.by_file.node_id)["rotation_pending"], "the renewal is over")

        token = self.plane.invite(display_name="by hand")
        self.found.secrets["enrollment token by hand"] = token
        body = wire.Enroll(node_id=uuid.uuid4(), boot_id=uuid.uuid4(), hostname="by-hand", agent_version="0.1.0")
        answer = self.agents_word("POST", protocol.ENROLL, token, body)
        self.found.issue("credential by enrollment", answer.json()["credential"])
        self.browser.send(f"/admin/enrollment/nodecredential/node/{body.node_id}/rotate/", overlap="86400", reason="")
        self.credential = self.shown("credential by page", "mfn")

    def mistakes(self) -> None:
        """Every secret where it does not belong."""
        beat = wire.Beat(boot_id=uuid.uuid4(), sequence=1, sent_at=datetime.now(UTC), agent_version="0.1.0")
        enroll = wire.Enroll(node_id=uuid.uuid4(), boot_id=uuid.uuid4(), hostname="mistaken", agent_version="0.1.0")
        for secret in (self.token, self.credential, self.operator_key, ADMIN_TOKEN):
            self.agents_word("POST", protocol.HEARTBEAT, secret, beat)
            self.agents_word("POST", protocol.ENROLL, secret, enroll)
            self.rest("GET", "/api/v1/hardware/nodes", headers={"X-ModelForge-Admin-Token": secret})
            self.rest("GET", "/api/v1/hardware/nodes", headers={"X-ModelForge-Admin-Token": f"{secret}x"})
            self.rest("GET", f"/api/v1/hardware/nodes?token={secret}")
            self.rest("GET", f"/api/v1/admin/node-enrollments/{secret}")
            self.rest("GET", f"/{secret}")
            self.rest("POST", "/api/v1/admin/node-enrollments", {"expires_in_seconds": secret})
            self.rest("POST", "/api/v1/admin/node-enrollments", {"labels": secret})
            self.rest("POST", "/api/v1/admin/node-enrollments", {"reason": secret}, headers={"Idempotency-Key": secret})
            self.rest("POST", "/api/v1/admin/node-enrollments", headers={"Content-Type": secret})
            assert self.agents_word("POST", protocol.HEARTBEAT, self.credential, {"boot_id": secret}).status_code == 400
            refused = self.agents_word("PUT", protocol.FACTS, self.credential, {"gpu_runtime": {"state": secret}})
            assert refused.status_code == 400
            self.browser.session.get(f"{self.plane.url}/admin/{secret}/", timeout=20)
        other = Browser(self.plane.url, self.found.keep)
        other.log_in("nobody", self.operator_key)
        other.log_in("nobody", OPERATOR_PASSWORD)
        for secret in (self.operator_key, OPERATOR_PASSWORD):
            other.log_in(secret, "pasted into the wrong field")
            self.found.forgive(secret)

    def trouble(self) -> None:
        """The proxy fails, so that the agent talks about it; an agent is refused, so that it talks about that."""
        self.proxy.rule = always(Fault(status=407))
        until(lambda: "the proxy wants" in self.by_proxy.log, "the agent speaks of its proxy")
        self.proxy.rule = always(FINE)
        self.rest("POST", f"/api/v1/admin/nodes/{self.by_file.node_id}/disable", {"reason": "a fan is loud"})
        until(lambda: "node_disabled" in self.by_file.log, "the agent says that it was disabled")

    def readers(self) -> None:
        auditor = {"X-ModelForge-Admin-Token": self.auditor_key}
        paths = ["hardware/nodes", "admin/node-enrollments", "audit-events", "audit-events?format=csv"]
        paths += ["audit-events?format=ndjson"]
        paths += [f"hardware/nodes/{agent.node_id}" for agent in (self.by_file, self.by_proxy)]
        paths += [f"hardware/nodes/{self.by_file.node_id}/telemetry"]
        for path in paths:
            assert self.rest("GET", f"/api/v1/{path}", headers=auditor).status_code == 200, path
        for path in ("/metrics", "/readyz", "/healthz", "/api/schema", "/api/docs"):
            self.rest("GET", path)

    def commands(self) -> None:
        for words in (["status", "--json"], ["health"], ["doctor"], ["facts", "--json"], ["enroll"]):
            done = self.by_proxy.command(*words)
            self.found.said[" ".join(words)] = done.stdout + done.stderr
        proven = self.plane.manage("audit_verify")
        self.found.said["audit_verify"] = proven.stdout + proven.stderr
        assert evidence.database(self.plane)
