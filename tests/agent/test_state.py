"""The state folder: what it survives, and what it refuses."""

import os
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from uuid import UUID

import pytest

from agent.record import Busy, Corrupt, Ephemeral, Unwritable, is_credential
from agent.state import State
from tests.agent.processes import ROOT
from tests.agent.scripted import CREDENTIAL, RENEWED

NODE = UUID("6f1c1a53-9d0f-4a0e-8f0e-3f8f6f1f2a11")
DAMAGES = [b"", b"\0" * 37, b"\0", b"{", b"6f1c1a53-9d0f", b"\xff\xfe\xfd", b"mfn_"]


@pytest.fixture
def state(tmp_path: Path) -> State:
    """A state folder that was used before."""
    made = State(tmp_path / "state")
    made.prepare(allow_ephemeral=True)
    made.keep_node_id(NODE)
    made.credential.keep(CREDENTIAL)
    return made


def again(state: State) -> State:
    """The folder as the next process finds it."""
    return State(state.folder)


def test_what_was_kept_is_found_by_the_next_process(state: State) -> None:
    assert again(state).node_id() == NODE
    assert again(state).credential.recover() == CREDENTIAL


def test_an_unused_folder_holds_nothing(tmp_path: Path) -> None:
    fresh = State(tmp_path / "state")
    fresh.prepare(allow_ephemeral=True)
    assert fresh.node_id() is None
    assert fresh.credential.recover() is None


def test_all_files_are_for_their_owner_only(state: State) -> None:
    files = [path for path in state.folder.iterdir() if path.is_file()]
    assert {path.name for path in files} == {"node-id", "node-id.previous", "node-credential"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert stat.S_IMODE(state.folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_identity_is_healed_from_its_copy(state: State, damage: bytes) -> None:
    """Field case 12."""
    (state.folder / "node-id").write_bytes(damage)
    assert again(state).node_id() == NODE
    assert (state.folder / "node-id.damaged").read_bytes() == damage
    assert again(state).node_id() == NODE


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_identity_without_a_copy_is_never_replaced_by_a_new_one(state: State, damage: bytes) -> None:
    """Field case 12."""
    (state.folder / "node-id").write_bytes(damage)
    (state.folder / "node-id.previous").unlink()
    for _ in range(2):  # nor at the start after
        with pytest.raises(Corrupt, match="state_corrupt"):
            again(state).node_id()
    assert (state.folder / "node-id").read_bytes() == damage


def test_both_copies_damaged_is_corrupt(state: State) -> None:
    (state.folder / "node-id").write_bytes(b"")
    (state.folder / "node-id.previous").write_bytes(b"")
    with pytest.raises(Corrupt):
        again(state).node_id()


def test_a_missing_identity_is_healed_from_its_copy(state: State) -> None:
    (state.folder / "node-id").unlink()
    assert again(state).node_id() == NODE


def test_a_credential_without_an_identity_is_corrupt_not_a_new_node(state: State) -> None:
    (state.folder / "node-id").unlink()
    (state.folder / "node-id.previous").unlink()
    with pytest.raises(Corrupt, match="node-id is gone while a credential is there"):
        again(state).node_id()


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_credential_is_healed_from_the_last_accepted_one(state: State, damage: bytes) -> None:
    state.credential.confirm()
    (state.folder / "node-credential").write_bytes(damage)
    assert again(state).credential.recover() == CREDENTIAL


def test_a_damaged_credential_that_was_never_accepted_is_corrupt(state: State) -> None:
    (state.folder / "node-credential").write_bytes(b"")
    with pytest.raises(Corrupt):
        again(state).credential.recover()


def test_the_credential_before_stays_until_the_new_one_was_accepted(state: State) -> None:
    previous = state.folder / "node-credential.previous"
    state.credential.keep(RENEWED)
    assert previous.read_text().strip() == CREDENTIAL
    state.credential.confirm()
    assert previous.read_text().strip() == RENEWED


def test_a_write_that_fails_leaves_the_old_value_and_no_litter(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        state.credential.keep(RENEWED)
    monkeypatch.undo()
    assert again(state).credential.recover() == CREDENTIAL
    assert not [path for path in state.folder.iterdir() if path.name.startswith(".")]


def test_a_value_written_by_hand_may_end_in_a_newline_and_is_closed_to_others(state: State) -> None:
    path = state.folder / "node-credential"
    path.write_text(f"  {RENEWED}\r\n")
    path.chmod(0o644)
    assert again(state).credential.recover() == RENEWED
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("text", ["", "mfn_", "mfe_a_b_c" * 4, "mfn_abc def_" + "x" * 30, CREDENTIAL + "\0", "x" * 300])
def test_what_has_not_the_shape_of_a_credential_is_none(text: str) -> None:
    assert not is_credential(text)
    assert is_credential(CREDENTIAL)


def test_a_second_agent_on_the_same_folder_is_refused(state: State) -> None:
    state.lock()
    with pytest.raises(Busy, match=f"process {os.getpid()}"):
        again(state).lock()
    state.close()
    second = again(state)
    second.lock()
    second.close()


def test_a_killed_agent_leaves_no_lock_behind(state: State) -> None:
    """Field case 69: a kernel lock, not an existence file."""
    code = (
        "import sys; from pathlib import Path; from agent.state import State\n"
        "state = State(Path(sys.argv[1])); state.lock(); print('locked', flush=True); input()"
    )
    arguments = [sys.executable, "-c", code, str(state.folder)]
    holder = subprocess.Popen(arguments, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(Busy):
            state.lock()
        holder.send_signal(signal.SIGKILL)
        holder.wait(10)
    state.lock()
    state.close()


def test_a_folder_that_cannot_be_written_is_told_with_uid_path_and_command() -> None:
    """Field case 11: as an ordinary user, since root may write everywhere."""
    folder = Path(tempfile.mkdtemp(prefix="modelforge-test-"))  # pytest's own folders are closed to other users
    folder.chmod(0o555)
    code = (
        "import os, sys; from pathlib import Path; from agent.state import State; from agent.record import StateError\n"
        "if os.geteuid() == 0: os.setgid(65534); os.setuid(65534)\n"
        "try: State(Path(sys.argv[1])).prepare(allow_ephemeral=True)\n"
        "except StateError as error: print(error); sys.exit(error.exit_code)"
    )
    arguments = [sys.executable, "-c", code, str(folder)]
    try:
        found = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False)
    finally:
        folder.chmod(0o755)
        folder.rmdir()
    assert found.returncode == 74, found.stderr
    assert str(folder) in found.stdout
    assert f"uid {os.geteuid() or 65534}" in found.stdout
    assert "chown -R" in found.stdout


def test_a_file_in_the_folders_place_is_told(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    with pytest.raises(Unwritable, match="A file is in its place"):
        State(tmp_path / "state").prepare(allow_ephemeral=True)


OVERLAY = "22 1 0:21 / {point} rw - overlay overlay rw,lowerdir=/x\n"
VOLUME = "30 22 8:1 /volumes/state {point} rw - ext4 /dev/sda1 rw\n"
MEMORY = "30 22 0:40 / {point} rw - tmpfs tmpfs rw\n"
SUBVOLUME = "22 1 0:21 /btrfs/subvolumes/abc {point} rw - btrfs /dev/loop2 rw\n"
DISK = "22 1 254:0 / {point} rw - ext4 /dev/vda rw\n"


def machine(folder: Path, mounts: str, *, container: bool) -> Path:
    """A root file system that says what the kernel would."""
    root = folder / "root"
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/mountinfo").write_text(mounts)
    if container:
        (root / ".dockerenv").touch()
    return root


@pytest.mark.parametrize(
    ("mounts", "container", "lost"),
    [
        (OVERLAY, True, True),
        (SUBVOLUME, True, True),
        (OVERLAY, False, False),
        (DISK, False, False),
        (DISK, True, False),
    ],
)
def test_a_folder_on_the_containers_own_root_is_refused(
    tmp_path: Path, mounts: str, container: bool, lost: bool
) -> None:
    """Field case 10."""
    root = machine(tmp_path, mounts.format(point="/"), container=container)
    state = State(tmp_path / "state")
    if lost:
        with pytest.raises(Ephemeral, match="MODELFORGE_AGENT_ALLOW_EPHEMERAL_STATE") as error:
            state.prepare(allow_ephemeral=False, root=root)
        assert error.value.exit_code == 78
    else:
        state.prepare(allow_ephemeral=False, root=root)
    assert state.ephemeral is lost


@pytest.mark.parametrize(("volume", "lost"), [(VOLUME, False), (MEMORY, True)])
def test_a_volume_on_top_of_the_root_is_fine_and_memory_is_not(tmp_path: Path, volume: str, lost: bool) -> None:
    mounts = OVERLAY.format(point="/") + volume.format(point=str(tmp_path / "state"))
    state = State(tmp_path / "state")
    state.prepare(allow_ephemeral=True, root=machine(tmp_path, mounts, container=True))
    assert state.ephemeral is lost
