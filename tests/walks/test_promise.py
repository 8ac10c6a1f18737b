"""The promise, walked as the deployment document writes it: joined, seen, killed, missed, back as the same node."""

import json
import os
import re
import subprocess
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.nvml import standin
from tests.parts.agents import Agent
from tests.parts.control_plane import ADMIN_TOKEN, INTERVAL, ControlPlane, instant
from tests.walks.journey import join, seen, sweep_after, told

# The document's own words; its host is the one thing that differs here.
REQUEST = """\
curl -sS -X POST https://modelforge.example/api/v1/admin/node-enrollments \\
  -H "X-ModelForge-Admin-Token: $MODELFORGE_OPERATOR_API_KEY" \\
  -H 'Content-Type: application/json' \\
  -d '{"expires_in_seconds":900,"display_name":"server01","role":"primary-inference",\
"labels":{"site":"office"},"production_eligible":false,"lab_eligible":true,"benchmark_eligible":true}'
"""
GPUS = {"LD_LIBRARY_PATH": str(standin.library()), **standin.lines(devices=2, memory_mib=[143771, 81920])}

pytestmark = pytest.mark.walk


def ask_as_written(plane: ControlPlane) -> dict[str, Any]:
    """The document's request, through a shell and the real curl."""
    script = REQUEST.replace("https://modelforge.example", plane.url)
    environment = {"PATH": os.environ["PATH"], "MODELFORGE_OPERATOR_API_KEY": ADMIN_TOKEN}
    done = subprocess.run(
        ["sh", "-ec", script], env=environment, capture_output=True, text=True, timeout=20, check=True
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def variables_of_the_document(token: str) -> dict[str, str]:
    """Its ``.env``, the address aside; the volumes are Compose's business."""
    return {
        "MODELFORGE_AGENT_ENROLLMENT_TOKEN": token,
        "MODELFORGE_AGENT_DISPLAY_NAME": "Server 01",
        "MODELFORGE_AGENT_HOSTNAME": "server01",
        "MODELFORGE_AGENT_TLS_VERIFY": "true",
        "MODELFORGE_AGENT_STATE_VOLUME": "/mnt/user/appdata/modelforge-node-agent/state",
        "MODELFORGE_AGENT_HF_CACHE_VOLUME": "/mnt/cache/appdata/modelforge-node-agent/hf-cache",
        "MODELFORGE_AGENT_ARTIFACT_VOLUME": "/mnt/cache/appdata/modelforge-node-agent/artifacts",
        "MODELFORGE_AGENT_QUARANTINE_VOLUME": "/mnt/cache/appdata/modelforge-node-agent/quarantine",
        "MODELFORGE_HF_TOKEN": "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",
    }


def test_the_documents_request_answers_with_the_secret_once(plane: ControlPlane) -> None:
    answer = ask_as_written(plane)
    assert re.fullmatch(r"mfe_[0-9A-Za-z]{12}_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}", answer["token"])
    assert answer["labels"] == {"site": "office"}
    assert (answer["production_eligible"], answer["lab_eligible"], answer["benchmark_eligible"]) == (False, True, True)
    again = plane.call("GET", f"/api/v1/admin/node-enrollments/{answer['id']}")
    assert again.json()["last_four"] == answer["last_four"]
    assert answer["token"] not in again.text + plane.call("GET", "/api/v1/admin/node-enrollments").text


def test_a_server_joins_is_seen_goes_silent_and_comes_back_as_the_same_node(
    plane: ControlPlane, agent: Callable[..., Agent]
) -> None:
    server = agent(plane.url, **variables_of_the_document(ask_as_written(plane)["token"]), **GPUS).start()
    seen(plane, server, "online")
    told(plane, server, "accelerator.found")
    before = plane.node(server.node_id)
    credential = server.credential
    assert (before["display_name"], before["hostname"], before["role"]) == ("server01", "server01", "primary-inference")
    the_truth_about_this_machine(before, server)

    server.kill()
    seen(plane, server, "stale")
    seen(plane, server, "offline")
    stale, offline = told(plane, server, "node.stale", "node.offline", count=2)
    heard = instant(plane.node(server.node_id)["last_heard_at"])
    assert (stale["type"], instant(stale["at"])) == ("node.stale", heard + 3 * INTERVAL)
    assert (offline["type"], instant(offline["at"])) == ("node.offline", heard + 6 * INTERVAL)

    del server.environment["MODELFORGE_AGENT_ENROLLMENT_TOKEN"]
    server.start()
    (returned,) = told(plane, server, "node.returned")
    away = instant(returned["at"]) - heard
    assert timedelta(seconds=returned["details"]["outage_seconds"]) == pytest.approx(away, abs=INTERVAL)
    assert away > 6 * INTERVAL
    assert (returned["details"]["was"], returned["details"]["planned"]) == ("offline", False)

    after = seen(plane, server, "online")
    assert after["id"] == before["id"] == server.node_id
    assert [gpu["uuid"] for gpu in after["accelerators"]] == [gpu["uuid"] for gpu in before["accelerators"]]
    assert server.credential == credential
    assert the_story(plane, server) == [
        "node.enrolled",
        "credential.issued",
        "credential.first_used",
        "node.online",
        "accelerator.found",
        "node.stale",
        "node.offline",
        "node.returned",
    ]
    proven = plane.manage("audit_verify")
    assert proven.returncode == 0, proven.stdout + proven.stderr


def the_story(plane: ControlPlane, server: Agent) -> list[str]:
    """The types of the node's history, in order."""
    return [event["type"] for event in plane.events(node=server.node_id)]


def the_truth_about_this_machine(node: dict[str, Any], server: Agent) -> None:
    """What REST tells of the node is what psutil, the file system and the driver say."""
    host = node["facts"]["host"]
    assert host["cpu_visible"]["value"] == psutil.cpu_count()
    assert host["memory_visible_bytes"]["value"] == psutil.virtual_memory().total
    volumes = {volume["name"]: volume for volume in node["volumes"]}
    assert sorted(volumes) == ["artifacts", "hf-cache", "quarantine", "state"]
    for name, volume in volumes.items():
        folder = server.folder / name
        assert (volume["path"], volume["total_bytes"]) == (str(folder), size_of(folder))
    gpus = node["accelerators"]
    assert [gpu["memory_bytes"] for gpu in gpus] == [143771 * 2**20, 81920 * 2**20]
    assert [gpu["uuid"] for gpu in gpus] == [f"GPU-00000000-0000-0000-0000-{index:012d}" for index in (0, 1)]
    assert node["gpu_runtime"]["state"] == "ready"


def size_of(folder: Path) -> int:
    """The size of the file system that a folder lies on."""
    found = os.statvfs(folder)
    return found.f_blocks * found.f_frsize


def test_a_planned_stop_is_told_as_one_and_never_as_silence(plane: ControlPlane, agent: Callable[..., Agent]) -> None:
    """Field case 38."""
    server = join(plane, agent, name="planned")
    assert server.stop() == 0
    (stopped,) = told(plane, server, "node.stopped")
    node = plane.node(server.node_id)
    assert (node["liveness"], stopped["details"]["reason"]) == ("offline", "stopped by SIGTERM")
    overdue = instant(node["heartbeat"]["offline_at"])
    sweep_after(plane, overdue)
    assert plane.events("node.stale", "node.offline", node=server.node_id) == []
    server.start()
    (returned,) = told(plane, server, "node.returned")
    assert returned["details"]["planned"] is True


def test_the_same_silence_without_a_goodbye_is_told(plane: ControlPlane, agent: Callable[..., Agent]) -> None:
    server = join(plane, agent, name="crashed")
    server.kill()
    sweep_after(plane, instant(plane.node(server.node_id)["heartbeat"]["offline_at"]))
    assert [e["type"] for e in plane.events("node.stale", "node.offline", node=server.node_id)] == [
        "node.stale",
        "node.offline",
    ]
