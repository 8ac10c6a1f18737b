"""What happens to a node that is refused: the operator sees why, the agent parks, and mending it is enough."""

import dataclasses
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
import requests

from agent import protocol, wire
from tests.parts.agents import Agent
from tests.parts.control_plane import ControlPlane, instant
from tests.parts.ports import until
from tests.walks.journey import join, parked, seen, told

Make = Callable[..., Agent]

pytestmark = pytest.mark.walk


@dataclasses.dataclass(frozen=True)
class Voice:
    """An agent's words, said by hand with a node's credential."""

    plane: ControlPlane
    credential: str
    boot_id: uuid.UUID = dataclasses.field(default_factory=uuid.uuid4)

    def beat(self, *, version: str | None = "1", credential: str = "") -> requests.Response:
        """A beat."""
        body = wire.Beat(boot_id=self.boot_id, sequence=1, sent_at=datetime.now(UTC), agent_version="0.1.0")
        return self.say("POST", protocol.HEARTBEAT, body, version=version, credential=credential)

    def facts(self, host: dict[str, Any]) -> requests.Response:
        """Facts, with a host that was told before."""
        body = {
            "boot_id": str(self.boot_id),
            "observed_at": datetime.now(UTC).isoformat(),
            "host": host | {"hostname": "renamed"},
            "agent": {
                "version": "0.1.0",
                "protocol": 1,
                "python": "3.13",
                "started_at": datetime.now(UTC).isoformat(),
                "tls_verify": True,
            },
            "gpu_runtime": {"state": "absent"},
        }
        return self.say("PUT", protocol.FACTS, body)

    def goodbye(self) -> requests.Response:
        """A goodbye."""
        return self.say("POST", protocol.GOODBYE, wire.Goodbye(boot_id=self.boot_id))

    def renewal(self) -> requests.Response:
        """The wish for a new credential."""
        return self.say("POST", protocol.CREDENTIAL, {})

    def say(
        self, method: str, path: str, body: Any, *, version: str | None = "1", credential: str = ""
    ) -> requests.Response:
        headers = {"Authorization": f"Bearer {credential or self.credential}", "Content-Type": "application/json"}
        if version is not None:
            headers[protocol.VERSION_HEADER] = version
        return requests.request(
            method, self.plane.url + path, data=wire.encode(body), headers=headers, timeout=20, proxies={"http": ""}
        )


def code(answer: requests.Response) -> tuple[int, str]:
    """The status and the stable code of a refusal."""
    return answer.status_code, answer.json()["code"]


def test_a_disabled_node_publishes_nothing_and_goes_on_by_itself_when_enabled(plane: ControlPlane, agent: Make) -> None:
    """Field case 24."""
    server = join(plane, agent, name="disabled")
    node = plane.node(server.node_id)
    plane.post(f"/api/v1/admin/nodes/{node['id']}/disable", reason="a fan is loud")
    voice = Voice(plane, server.credential)
    answers = [voice.beat(), voice.facts(node["facts"]["host"]), voice.goodbye(), voice.renewal()]
    assert [code(answer) for answer in answers] == [(403, "node_disabled")] * 4
    line = parked(server, "node_disabled")
    assert "disabled" in line
    refused = plane.node(node["id"])
    assert (refused["refused_code"], refused["enabled"], refused["enabled_reason"]) == (
        "node_disabled",
        False,
        "a fan is loud",
    )
    assert refused["facts"]["host"]["hostname"] == node["facts"]["host"]["hostname"]
    assert len(plane.events("node.refused", node=node["id"])) == 1

    plane.post(f"/api/v1/admin/nodes/{node['id']}/enable", reason="quiet again")
    (again,) = told(plane, server, "node.accepted_again")
    assert again["details"]["was"] == "node_disabled"
    assert seen(plane, server, "online")["refused_code"] == ""
    until(lambda: server.health()[0] == 0, "the agent is healthy again", every=0.3)


SAID = [("0", "0"), ("9", "9"), (None, "none"), ("abc", "abc")]


def test_another_protocol_is_refused_and_told_once_per_version(plane: ControlPlane, agent: Make) -> None:
    """Field case 25."""
    server = join(plane, agent, name="from-another-release")
    server.kill()
    voice = Voice(plane, server.credential)
    for version, shown in SAID:
        before = datetime.now(UTC)
        answers = [voice.beat(version=version), voice.beat(version=version)]
        assert [code(answer) for answer in answers] == [(426, "protocol_unsupported")] * 2
        assert answers[0].json()["protocols"] == [1]
        node = plane.node(server.node_id)
        assert (node["protocol_refused"], node["protocol_refused_said"]) == (True, shown)
        assert instant(node["refused_at"]) >= before
    refusals = plane.events("node.protocol_refused", node=server.node_id)
    assert [event["details"]["said"] for event in refusals] == [shown for _, shown in SAID]
    assert voice.beat().status_code == 200
    assert plane.node(server.node_id)["protocol_refused"] is False


@pytest.mark.parametrize("version", ["0", "9", None, "abc"])
def test_enrolling_in_another_protocol_does_not_spend_the_token(plane: ControlPlane, version: str | None) -> None:
    """Field case 4."""
    voice = Voice(plane, plane.invite())
    body = wire.Enroll(node_id=uuid.uuid4(), boot_id=uuid.uuid4(), hostname="a_b", agent_version="0.1.0")
    assert code(voice.say("POST", protocol.ENROLL, body, version=version)) == (426, "protocol_unsupported")
    assert voice.say("POST", protocol.ENROLL, body).status_code == 200


def rotated(plane: ControlPlane, server: Agent, **how: Any) -> str:
    """A new credential for the agent's node."""
    text: str = plane.post(f"/api/v1/admin/nodes/{server.node_id}/credential/rotate", **how)["credential"]
    return text


def test_a_revoked_agent_parks_and_recovers_when_a_new_credential_is_set(plane: ControlPlane, agent: Make) -> None:
    server = join(plane, agent, name="revoked")
    process, old = server.pid, server.credential
    plane.post(f"/api/v1/admin/nodes/{server.node_id}/credential/revoke", reason="it was mailed around")
    parked(server, "credential_revoked")
    assert code(Voice(plane, old).beat()) == (401, "credential_revoked")
    assert server.credential == old, "the agent never deletes its credential"

    new = rotated(plane, server, reason="mended")
    assert server.command("credential", "set", stdin=new).returncode == 0
    until(lambda: server.health()[0] == 0, "the agent is healthy again", every=0.3)
    assert (server.pid, server.credential) == (process, new)
    assert server.running
    assert plane.node(server.node_id)["credential_state"] == "active"


def test_the_old_credential_works_until_the_new_one_is_first_used(plane: ControlPlane, agent: Make) -> None:
    """Field case 14."""
    server = join(plane, agent, name="rotated")
    old, voice = server.credential, Voice(plane, server.credential)
    new = rotated(plane, server)
    assert plane.node(server.node_id)["rotation_pending"] is True
    host = plane.node(server.node_id)["facts"]["host"]
    until(lambda: voice.facts(host).status_code == 200, "other facts are taken, a second after the agent's own")
    assert server.command("credential", "set", stdin=new).returncode == 0
    told(plane, server, "credential.first_used", count=2)
    assert code(voice.beat(credential=old)) == (401, "credential_superseded")
    assert plane.node(server.node_id)["rotation_pending"] is False


def test_an_agent_with_a_superseded_credential_parks_and_recovers_without_a_restart(
    plane: ControlPlane, agent: Make
) -> None:
    server = join(plane, agent, name="superseded")
    process = server.pid
    new = rotated(plane, server, overlap_seconds=0)
    parked(server, "credential_superseded")
    assert server.command("credential", "set", stdin=new).returncode == 0
    told(plane, server, "node.accepted_again")
    until(lambda: server.health()[0] == 0, "the agent is healthy again", every=0.3)
    assert (server.pid, server.running) == (process, True)


def test_a_copied_state_folder_is_one_conflict_and_the_list_stays_as_it_was(plane: ControlPlane, agent: Make) -> None:
    """Field case 1."""
    first = join(plane, agent, name="the original")
    nodes = {node["id"] for node in plane.nodes()}
    copy = agent(plane.url)
    for path in (first.folder / "state").iterdir():
        if path.name != "lock":
            (copy.folder / "state" / path.name).write_bytes(path.read_bytes())
    copy.start()
    (conflict,) = told(plane, first, "node.identity_conflict")
    parked(first, "identity_conflict")
    speaking = seen(plane, first, "online")
    sequence = speaking["heartbeat"]["sequence"]
    until(lambda: plane.node(first.node_id)["heartbeat"]["sequence"] > sequence + 2, "the one that speaks goes on")
    node = plane.node(first.node_id)
    assert node["heartbeat"]["boot_id"] == speaking["heartbeat"]["boot_id"] == conflict["details"]["speaking"]
    assert node["identity_conflict"] is True
    assert copy.node_id == first.node_id
    assert {node["id"] for node in plane.nodes()} == nodes
    assert len(plane.events("node.identity_conflict", node=first.node_id)) == 1
    assert len(plane.events("node.restarted", node=first.node_id)) == 1


def test_a_retired_node_hears_so_and_stays_retired(plane: ControlPlane, agent: Make) -> None:
    """Field case 23."""
    server = join(plane, agent, name="retired")
    plane.post(f"/api/v1/admin/nodes/{server.node_id}/retire", reason="sold")
    parked(server, "node_retired")
    assert code(Voice(plane, server.credential).beat()) == (410, "node_retired")
    assert server.node_id not in {node["id"] for node in plane.nodes()}
    assert plane.node(server.node_id)["liveness"] == "offline"
