"""The real agent at work, over real sockets: it proves a root, does a job, and lets go of one when it is stopped."""

import json
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any
from uuid import uuid4

import pytest

from agent import protocol
from tests.agent.processes import Agent, command, environment, joined
from tests.agent.scripted import Answer, ControlPlane, Request, said
from tests.hub.faults import Fault
from tests.hub.hub import Hub

Start = Callable[[dict[str, str]], Agent]
ROOT, JOB, LEASE = (str(uuid4()) for _ in range(3))


@pytest.fixture
def hub() -> Iterator[Hub]:
    """A stand-in for the Hub."""
    with Hub() as made:
        yield made


@pytest.fixture
def volumes(tmp_path: Path) -> Path:
    """The folders of an agent that joined; the one of its storage root."""
    joined(tmp_path)
    for name in ("hf-cache", "artifacts", "quarantine"):
        (tmp_path / name).mkdir()
    return tmp_path / "artifacts/models"


class Desk:
    """The control plane's end of one root and one job."""

    def __init__(self, plane: ControlPlane, root: Path, order: dict[str, Any]) -> None:
        self.plane, self.root = plane, root
        self.order = {"root_id": ROOT, "path": str(root)} | order
        self.given = False
        plane.rules[protocol.CLAIM] = self._claim
        plane.rules[protocol.progress(JOB)] = lambda _: said({"lease_seconds": 60})
        plane.rules[protocol.result(JOB)] = lambda _: said({"state": "done"})
        plane.interval = 0.5

    def _claim(self, request: Request) -> Answer:
        proofs = request.json["proofs"]
        device = proofs[0]["device_id"] if proofs and proofs[0].get("fault") is None else ""
        root = {"root_id": ROOT, "path": str(self.root), "approve": not device, "device_id": device}
        job = {"id": JOB, "attempt": 1, "lease_id": LEASE, "lease_seconds": 60, "order": self.order}
        given = bool(device and request.json["types"] and not self.given)
        self.given = self.given or given
        return said({"roots": [root], "look_again_seconds": 300} | ({"job": job} if given else {}))

    def result(self) -> dict[str, Any]:
        """The result, once it was told."""
        return self.plane.wait_for(protocol.result(JOB)).json


def test_it_proves_a_root_does_a_job_there_and_tells_the_result(
    plane: ControlPlane, start: Start, tmp_path: Path, volumes: Path
) -> None:
    repo, commit = "org/model", "c" * 40
    order = {
        "type": "artifact.verify.v1",
        "snapshot": f"models/{repo}/{commit}",
        "repo_id": repo,
        "commit": commit,
    }
    desk = Desk(plane, volumes, order)
    agent = start(environment(tmp_path, plane.url))
    result = desk.result()
    assert (result["lease_id"], result["outcome"]) == (LEASE, "succeeded")
    assert result["verified"]["missing"]
    marker = json.loads((volumes / ".modelforge-root").read_text())
    assert marker["root_id"] == ROOT
    claims = [request.json for request in plane.asked(protocol.CLAIM)]
    assert claims[0]["types"] == []
    assert claims[0]["proofs"] == []
    approvals = [proof for claim in claims for proof in claim["proofs"] if proof["approved"]]
    assert len(approvals) == 1
    assert agent.stop() == 0
    assert len(plane.asked(protocol.result(JOB))) == 1


def test_stopped_in_the_middle_of_a_job_it_says_so_before_it_says_goodbye(
    plane: ControlPlane, start: Start, tmp_path: Path, volumes: Path, hub: Hub
) -> None:
    repo = hub.repo("org/model", {"config.json": b"{}"})
    hub.fault("info", Fault(silent=True))
    desk = Desk(plane, volumes, {"type": "artifact.acquire.v1", "repo_id": repo.id, "revision": "main"})
    agent = start(environment(tmp_path, plane.url, HF_ENDPOINT=hub.url))
    plane.wait(lambda: hub.of("info"), "the Hub is asked")
    status = json.loads(command(environment(tmp_path, plane.url), "status", "--json").stdout)
    assert (status["job_id"], status["job_phase"]) == (JOB, "plan")
    assert agent.stop(signal.SIGTERM) == 0
    assert desk.result()["outcome"] == "released"
    paths = [request.path for request in plane.requests]
    assert paths.index(protocol.result(JOB)) < paths.index(protocol.GOODBYE)
    assert paths[-1] == protocol.GOODBYE


@pytest.mark.parametrize("hangs", ["a progress", "a claim"])
def test_stopped_while_a_request_of_the_worker_hangs_the_job_is_let_go_over_another_connection(
    plane: ControlPlane, start: Start, tmp_path: Path, volumes: Path, hub: Hub, hangs: str
) -> None:
    repo = hub.repo("org/model", {"config.json": b"{}"})
    asked, over = Event(), Event()

    def hang(answer: Callable[[Request], Answer]) -> Callable[[Request], Answer]:
        def rule(request: Request) -> Answer:
            asked.set()
            over.wait(20)
            return answer(request)

        return rule

    if hangs == "a claim":
        hub.fault("info", Fault(silent=True))
    desk = Desk(plane, volumes, {"type": "artifact.acquire.v1", "repo_id": repo.id, "revision": "main"})
    path = protocol.progress(JOB)
    if hangs == "a claim":
        plane.rules[protocol.HEARTBEAT] = lambda _: plane.beat_reply(work=desk.given)
    else:
        plane.rules[path] = hang(plane.rules[path])
    agent = start(environment(tmp_path, plane.url, HF_ENDPOINT=hub.url))
    try:
        if hangs == "a claim":
            plane.wait(lambda: hub.of("info"), "the Hub is asked")
            plane.rules[protocol.CLAIM] = hang(plane.rules[protocol.CLAIM])
        assert asked.wait(15)
        begun = time.monotonic()
        assert agent.stop(signal.SIGTERM) == 0
        assert time.monotonic() - begun < 9
        assert desk.result()["outcome"] == "released"
        assert len(plane.asked(protocol.result(JOB))) == 1
        assert plane.requests[-1].path == protocol.GOODBYE
    finally:
        over.set()


def test_a_snapshot_comes_and_the_hubs_token_goes_nowhere_else(
    plane: ControlPlane, start: Start, tmp_path: Path, volumes: Path, hub: Hub
) -> None:
    token = hub.token("hf_" + "t" * 34)
    repo = hub.repo("org/model", {"config.json": b"{}"})
    desk = Desk(plane, volumes, {"type": "artifact.acquire.v1", "repo_id": repo.id, "revision": "main"})
    agent = start(environment(tmp_path, plane.url, HF_ENDPOINT=hub.url, MODELFORGE_HF_TOKEN=token))
    result = desk.result()
    assert result["outcome"] == "succeeded", result
    assert (volumes / result["published"]["snapshot"] / "config.json").read_bytes() == b"{}"
    progress = [request.json for request in plane.asked(protocol.progress(JOB))]
    assert progress[0]["commit"] == repo.sha
    assert progress[0]["bytes_fetched"] == 0
    agent.stop()
    assert token[3:] not in agent.output
    assert not [r for r in plane.requests if token.encode() in r.body or token in str(dict(r.headers))]
