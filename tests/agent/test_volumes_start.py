"""What the agent refuses to start on: a host's root, a folder that dies with the container, a closed volume."""

import errno
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from agent import mounts, premises
from agent.record import Ephemeral, HostRoot, StateError, Unwritable
from agent.state import State
from agent.volumes import Volume
from agent.wire import Reading
from tests.agent.processes import ROOT
from tests.agent.test_state import OVERLAY, VOLUME, machine
from tests.parts.agents import Agent

NAMES = ("state", "hf-cache", "artifacts", "quarantine")


@pytest.fixture
def volumes(tmp_path: Path) -> list[Volume]:
    """Four empty folders that we may write to."""
    made = [Volume(name, tmp_path / name) for name in NAMES]
    for volume in made:
        volume.path.mkdir()
    return made


def a_system_at(folder: Path) -> Path:
    """What a host's root looks like from inside, wherever it is mounted."""
    for name in ("bin", "dev", "etc", "home", "proc", "sys", "usr", "var"):
        (folder / name).mkdir(parents=True)
    return folder


def faults(volumes: list[Volume], root: Path = Path("/"), *, allow_ephemeral: bool = False) -> list[StateError]:
    return premises.faults(volumes, allow_ephemeral=allow_ephemeral, root=root)


def test_four_folders_of_ones_own_are_fine(volumes: list[Volume]) -> None:
    assert faults(volumes, allow_ephemeral=True) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_hosts_root_is_refused_before_anything_is_written_to_it(volumes: list[Volume], name: str) -> None:
    folder = a_system_at(next(volume.path for volume in volumes if volume.name == name))
    before = sorted(os.listdir(folder))
    (fault,) = faults(volumes, allow_ephemeral=True)
    assert isinstance(fault, HostRoot)
    assert fault.exit_code == 78
    assert str(folder) in str(fault)
    assert f"MODELFORGE_AGENT_{name.replace('-', '_').upper().replace('ARTIFACTS', 'ARTIFACT')}_VOLUME" in str(fault)
    assert "chown" not in str(fault)  # the whole host would be given away
    assert sorted(os.listdir(folder)) == before


def test_a_model_folder_named_like_one_part_of_a_system_is_fine(volumes: list[Volume]) -> None:
    for name in ("dev", "etc"):
        (volumes[2].path / name).mkdir()
    assert faults(volumes, allow_ephemeral=True) == []


def test_every_command_that_writes_the_state_refuses_a_hosts_root(tmp_path: Path) -> None:
    folder = a_system_at(tmp_path / "state")
    with pytest.raises(HostRoot):
        State(folder).prepare(allow_ephemeral=True)
    assert not (folder / "node-id").exists()


def test_a_folder_of_the_containers_own_is_refused_by_its_variable(tmp_path: Path, volumes: list[Volume]) -> None:
    mounted = [volume for volume in volumes if volume.name != "artifacts"]
    text = OVERLAY.format(point="/") + "".join(VOLUME.format(point=volume.path) for volume in mounted)
    (fault,) = faults(volumes, machine(tmp_path, text, container=True))
    assert isinstance(fault, Ephemeral)
    assert fault.exit_code == 78
    assert str(tmp_path / "artifacts") in str(fault)
    assert "MODELFORGE_AGENT_ARTIFACT_VOLUME" in str(fault)


def test_four_mounted_volumes_are_fine_in_a_container(tmp_path: Path, volumes: list[Volume]) -> None:
    text = OVERLAY.format(point="/") + "".join(VOLUME.format(point=volume.path) for volume in volumes)
    assert faults(volumes, machine(tmp_path, text, container=True)) == []


def test_folders_that_may_die_with_the_container_are_let_through(tmp_path: Path, volumes: list[Volume]) -> None:
    root = machine(tmp_path, OVERLAY.format(point="/"), container=True)
    assert len(faults(volumes, root)) == 4
    assert faults(volumes, root, allow_ephemeral=True) == []


def test_a_file_server_that_hangs_keeps_no_node_offline(
    tmp_path: Path, volumes: list[Volume], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even while it is asked whether it outlives the container; the facts tell of it."""
    root, let_go = machine(tmp_path, OVERLAY.format(point="/"), container=True), threading.Event()
    monkeypatch.setattr("agent.premises.WITHIN", timedelta(milliseconds=50))
    monkeypatch.setattr(mounts, "covering", lambda *_: let_go.wait(20))
    try:
        assert faults(volumes[2:3], root) == []
    finally:
        let_go.set()


@pytest.fixture
def closed() -> Iterator[Path]:
    """A folder that nobody but root may write to; pytest's own folders are closed to other users as a whole."""
    folder = Path(tempfile.mkdtemp(prefix="modelforge-test-"))
    folder.chmod(0o555)
    yield folder
    folder.chmod(0o755)
    folder.rmdir()


def test_a_volume_that_cannot_be_written_is_told_with_uid_path_and_command(closed: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from agent import premises; from agent.volumes import Volume\n"
        "if os.geteuid() == 0: os.setgid(65534); os.setuid(65534)\n"
        "for fault in premises.faults([Volume('artifacts', Path(sys.argv[1]))], allow_ephemeral=True):\n"
        "    print(type(fault).__name__, fault.exit_code, fault)"
    )
    arguments = [sys.executable, "-c", code, str(closed)]
    found = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False)
    uid, gid = (os.geteuid(), os.getegid()) if os.geteuid() else (65534, 65534)
    assert found.stdout.startswith(f"Unwritable 74 {closed} cannot be read and written by uid {uid} "), found
    assert f"chown -R {uid}:{gid} {closed}" in found.stdout


@pytest.mark.parametrize(
    ("told", "refused"),
    [
        (Reading(value=False, code=errno.EROFS), True),
        (Reading(value=False, code=errno.ENOSPC), False),
        (Reading(value=False, code=errno.EDQUOT), False),
        (Reading(reason="error", code=errno.EIO), False),
        (Reading(reason="error", code=errno.ETIMEDOUT), False),
    ],
    ids=["read-only", "full", "over quota", "broken disk", "hanging"],
)
def test_what_only_a_person_can_mend_is_refused_and_the_rest_is_told_as_a_fact(
    volumes: list[Volume], monkeypatch: pytest.MonkeyPatch, told: Reading[bool], refused: bool
) -> None:
    """A node whose disk is full must stay online to say so."""
    monkeypatch.setattr("agent.volumes.writable", lambda path, within: told)
    found = faults(volumes[2:3], allow_ephemeral=True)
    assert [type(fault) for fault in found] == ([Unwritable] if refused else [])


def test_all_faults_are_told_at_once(volumes: list[Volume]) -> None:
    for volume in volumes[1:3]:
        a_system_at(volume.path)
    assert len(faults(volumes, allow_ephemeral=True)) == 2


def test_the_agent_ends_with_a_line_for_each_refused_volume(tmp_path: Path) -> None:
    agent = Agent(tmp_path, "http://127.0.0.1:9")
    a_system_at(tmp_path / "hf-cache")
    a_system_at(tmp_path / "quarantine")
    found = agent.command("run")
    assert found.returncode == 78
    assert [name for name in NAMES if f"/{name} is the root of a whole system" in found.stdout] == [
        "hf-cache",
        "quarantine",
    ]
    assert agent.node_id == ""
