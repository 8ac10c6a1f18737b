"""What the agent's container may do: seen from inside by its own Python, and from outside by docker inspect."""

import json
from typing import Any

import pytest

from tests.deploy import engine
from tests.deploy.parts import NodeAgent

LOOK = """
import json, os, subprocess
said = {}
said["processes"] = {}
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        status = dict(line.split(":", 1) for line in open(f"/proc/{pid}/status"))
    except OSError:
        continue
    said["processes"][pid] = {name: status[name].split()[0] for name in
                              ("Uid", "CapEff", "CapPrm", "CapBnd", "CapAmb", "CapInh", "NoNewPrivs", "Seccomp")}
mounts = [line.split() for line in open("/proc/self/mountinfo")]
said["mounts"] = {m[4]: {"options": m[5].split(","), "kind": m[m.index("-") + 1]} for m in mounts}
def tried(path):
    try:
        with open(path, "w") as file:
            file.write("x")
    except OSError as error:
        return error.strerror
    os.unlink(path)
    return "written"
folders = ["/", "/etc", "/usr", "/opt/modelforge", "/opt/venv", "/var", "/run", "/dev", "/dev/shm", "/root", "/home",
           "/var/tmp", "/data", "/etc/modelforge", "/tmp",
           "/data/state", "/data/hf-cache", "/data/artifacts", "/data/quarantine"]
said["writes"] = {folder: tried(os.path.join(folder, "probe")) for folder in folders}
space = os.statvfs("/tmp")
said["tmp_bytes"] = space.f_blocks * space.f_frsize
with open("/tmp/run-me", "w") as file:
    file.write("#!/bin/sh\\nexit 0\\n")
os.chmod("/tmp/run-me", 0o755)
try:
    subprocess.run(["/tmp/run-me"])
    said["tmp_runs"] = True
except PermissionError:
    said["tmp_runs"] = False
os.unlink("/tmp/run-me")
def listening(name, state):
    rows = [line.split() for line in open(f"/proc/net/{name}")][1:]
    return [row[1] for row in rows if row[3] == state and not row[1].startswith("0B00007F:")]  # the engine's own DNS
said["listening"] = {name: listening(name, "0A") for name in ("tcp", "tcp6")}
said["listening"] |= {name: listening(name, "07") for name in ("udp", "udp6", "raw")}
said["unix"] = [line.split() for line in open("/proc/net/unix")][1:]
found = subprocess.run(["find", "/", "-xdev", "-type", "s"], capture_output=True, text=True).stdout.split()
said["sockets"] = found + [p for p in ("/var/run/docker.sock", "/run/docker.sock") if os.path.exists(p)]
print(json.dumps(said))
"""

TMP = "/tmp"  # noqa: S108 - the container's own
VOLUMES = {"/data/state", "/data/hf-cache", "/data/artifacts", "/data/quarantine"}
CA = "/etc/modelforge/control-plane-ca.crt"
BASE = "python:3.13-slim-trixie"
MOST_ON_TOP_BYTES = 45 * 1000 * 1000
"""docs/deploy.md says what each part costs."""
ENGINES_OWN = {"/", "/sbin/docker-init", "/usr/sbin/docker-init", "/etc/resolv.conf", "/etc/hostname", "/etc/hosts"}


@pytest.fixture(scope="module")
def inside(agent: NodeAgent) -> dict[str, Any]:
    """What the container's own Python finds."""
    return dict(json.loads(agent.python(LOOK)))


@pytest.fixture(scope="module")
def outside(agent: NodeAgent) -> dict[str, Any]:
    """What docker inspect says."""
    return engine.inspect(agent.container)


def test_every_process_is_without_rights(inside: dict[str, Any]) -> None:
    assert len(inside["processes"]) >= 2
    for process in inside["processes"].values():
        assert process["Uid"] == "10001"
        assert {int(process[name], 16) for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb", "CapInh")} == {0}
        assert process["NoNewPrivs"] == "1"
        assert process["Seccomp"] == "2"


def test_nothing_but_tmp_and_the_four_volumes_can_be_written(inside: dict[str, Any]) -> None:
    written = {folder for folder, outcome in inside["writes"].items() if outcome == "written"}
    assert written == VOLUMES | {TMP}
    assert inside["writes"]["/"] == "Read-only file system" or inside["writes"]["/"] == "Permission denied"
    assert "ro" in inside["mounts"]["/"]["options"]


def test_tmp_is_small_in_memory_and_runs_nothing(inside: dict[str, Any]) -> None:
    assert inside["mounts"][TMP]["kind"] == "tmpfs"
    assert {"noexec", "nosuid", "nodev"} <= set(inside["mounts"][TMP]["options"])
    assert inside["tmp_bytes"] == 64 * 1024**2
    assert inside["tmp_runs"] is False


def test_nobody_listens(inside: dict[str, Any]) -> None:
    assert {name: found for name, found in inside["listening"].items() if found} == {}
    assert inside["unix"] == []
    assert inside["sockets"] == []


def test_only_the_four_volumes_and_the_ca_are_mounted(inside: dict[str, Any], outside: dict[str, Any]) -> None:
    from_the_host = {
        point for point in inside["mounts"] if not point.startswith(("/proc", "/sys", "/dev")) and point != TMP
    }
    assert from_the_host - ENGINES_OWN == VOLUMES | {CA}
    assert "ro" in inside["mounts"][CA]["options"]
    assert {mount["Destination"] for mount in outside["Mounts"]} == VOLUMES | {CA}
    assert [mount["Destination"] for mount in outside["Mounts"] if not mount["RW"]] == [CA]


def test_docker_says_the_same(outside: dict[str, Any]) -> None:
    host = outside["HostConfig"]
    assert host["CapDrop"] == ["ALL"]
    assert not host["CapAdd"]
    assert host["ReadonlyRootfs"] is True
    assert host["SecurityOpt"] == ["no-new-privileges:true"]
    assert host["Privileged"] is False
    assert host["PortBindings"] in ({}, None)
    assert not [port for port, places in outside["NetworkSettings"]["Ports"].items() if places]
    assert host["PidsLimit"] == 256
    assert host["Memory"] == 1024**3
    assert host["IpcMode"] == "none"
    assert host["Init"] is True
    assert not host["Devices"]
    assert not host["DeviceRequests"]
    assert [*host["Tmpfs"]] == [TMP]
    assert host["RestartPolicy"]["Name"] == "unless-stopped"
    assert host["LogConfig"] == {"Type": "json-file", "Config": {"max-size": "10m", "max-file": "3"}}
    assert outside["Config"]["User"] == "10001:10001"
    assert outside["Config"]["StopSignal"] == "SIGTERM"
    assert outside["Config"]["Healthcheck"]["Test"] == ["CMD", "python", "-m", "agent", "health"]
    assert outside["Config"]["Labels"]["org.opencontainers.image.title"] == "ModelForge agent"


def test_a_gpu_is_asked_for_its_library_and_nothing_else(agent: NodeAgent) -> None:
    """As written, without the overlay for servers that have none."""
    told = json.loads(
        engine.run(
            ["docker", "compose", "-f", "docker-compose.node-agent.yml", "config", "--format", "json"],
            cwd=agent.server.folder,
        ).stdout
    )
    (device,) = told["services"]["node-agent"]["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": -1, "capabilities": ["gpu", "utility"]}


def test_the_image_is_small(agent: NodeAgent) -> None:
    on_top = engine.size_bytes(engine.inspect(agent.container)["Image"]) - engine.size_bytes(BASE)
    assert 0 < on_top < MOST_ON_TOP_BYTES


def test_the_image_holds_the_agent_alone(agent: NodeAgent) -> None:
    assert agent.files("/opt/modelforge") == ["agent"]
    left = engine.docker(
        "exec",
        agent.container,
        "sh",
        "-c",
        "command -v gcc cc make; ls -d /*/.cache /home/*/.cache /opt/venv/bin/pip /data/state/.cache; true",
    )
    assert left == ""
    agent.python("import agent.daemon")  # writes no bytecode anywhere
    found = engine.docker("exec", agent.container, "find", TMP, "-name", "*.pyc")
    assert found == ""
