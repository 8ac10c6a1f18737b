"""A file with wrong bytes is moved to the quarantine volume with a record, or deleted where there is no room."""

import errno
import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from agent import wire
from agent.acquire.disk import paths
from agent.acquire.disk.quarantine import Quarantine
from agent.acquire.terms import Brake, Stopped
from tests.agent.acquire.samples import JOB, NOW, planned

BAD = b"wrong bytes"
SHA256 = hashlib.sha256(BAD).hexdigest()
MEANT = planned("d/model.safetensors", b"right bytes", large=True)
OTHER_JOB = UUID("22222222-2222-4333-8444-555555555555")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The quarantine volume."""
    (tmp_path / "quarantine").mkdir()
    return tmp_path / "quarantine"


def bad(tmp_path: Path, content: bytes = BAD) -> Path:
    """A file in a root."""
    path = tmp_path / "bad.part"
    path.write_bytes(content)
    return path


def put(
    tmp_path: Path, *, content: bytes = BAD, job: UUID = JOB, max_files: int = 10, max_bytes: int = 1000
) -> wire.Quarantined:
    """Put a bad file away."""
    quarantine = Quarantine(tmp_path / "quarantine", max_files, max_bytes)
    found = hashlib.sha256(content).hexdigest()
    return quarantine.put(job, bad(tmp_path, content), MEANT, found, "digest_mismatch", "org/model", now=NOW)


def record(folder: Path, sha256: str = SHA256, job: UUID = JOB) -> dict[str, Any]:
    """What lies beside it."""
    told: dict[str, Any] = json.loads((folder / str(job) / f"{sha256}.json").read_bytes())
    return told


def test_a_bad_file_moves_to_its_jobs_folder_under_its_own_digest(tmp_path: Path, folder: Path) -> None:
    told = put(tmp_path)
    assert (folder / told.location).read_bytes() == BAD
    assert told.location == f"{JOB}/{SHA256}"
    assert (told.path, told.size_bytes, told.expected, told.found) == (MEANT.path, 11, MEANT.digest, SHA256)
    assert (told.reason, told.kept) == ("digest_mismatch", True)
    assert not (tmp_path / "bad.part").exists()


def test_only_the_owner_may_look_at_it(tmp_path: Path, folder: Path) -> None:
    told = put(tmp_path)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (folder / str(JOB), folder / told.location)]
    assert modes == [0o700, 0o400]


def test_the_record_says_what_was_expected_and_found(tmp_path: Path, folder: Path) -> None:
    put(tmp_path)
    assert record(folder) == {
        "repo": "org/model",
        "path": "d/model.safetensors",
        "size_bytes": 11,
        "expected": MEANT.digest,
        "found": SHA256,
        "sha256": SHA256,
        "reason": "digest_mismatch",
        "kept": True,
        "at": "2026-03-04T05:06:07Z",
    }


def test_the_copy_is_flushed_and_read_again_before_the_source_goes(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there: list[bool] = []
    real = os.fsync

    def note(fd: int) -> None:
        there.append((tmp_path / "bad.part").exists())
        real(fd)

    monkeypatch.setattr(os, "fsync", note)
    put(tmp_path)
    assert len(there) >= 4  # the copy, its record, the job's folder, the volume
    assert all(there)


def refused(tmp_path: Path, told: wire.Quarantined, folder: Path, sha256: str, job: UUID = JOB) -> None:
    """The bytes are gone, and the record says so."""
    assert (told.kept, told.location) == (False, "")
    assert not (tmp_path / "bad.part").exists()
    assert not (folder / str(job) / sha256).exists()
    assert record(folder, sha256, job)["kept"] is False


def test_a_file_more_than_may_be_kept_is_deleted_and_recorded(tmp_path: Path, folder: Path) -> None:
    assert put(tmp_path, content=b"first", max_files=1).kept
    refused(tmp_path, put(tmp_path, max_files=1, job=OTHER_JOB), folder, SHA256, OTHER_JOB)


def test_bytes_more_than_may_be_kept_are_deleted_and_recorded(tmp_path: Path, folder: Path) -> None:
    assert put(tmp_path, content=b"12345", max_bytes=16).kept
    assert put(tmp_path, max_bytes=16, job=OTHER_JOB).kept
    refused(tmp_path, put(tmp_path, content=b"x", max_bytes=16), folder, hashlib.sha256(b"x").hexdigest())


def test_a_full_volume_deletes_the_bytes_and_keeps_the_record(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(fd: int, data: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    refused(tmp_path, put(tmp_path), folder, SHA256)
    assert os.listdir(folder / str(JOB)) == [f"{SHA256}.json"]


def test_a_copy_that_reads_back_differently_is_not_kept(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, b"\0" * len(data)))
    refused(tmp_path, put(tmp_path), folder, SHA256)


def test_bytes_that_no_record_explains_are_not_kept(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(paths.Tree, "write", full)
    told = put(tmp_path)
    assert (told.kept, told.location) == (False, "")
    assert os.listdir(folder / str(JOB)) == []


def test_without_its_volume_the_bytes_are_deleted_all_the_same(tmp_path: Path) -> None:
    told = put(tmp_path)
    assert (told.kept, told.location) == (False, "")
    assert not (tmp_path / "bad.part").exists()


def test_a_volume_that_is_a_link_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "quarantine").symlink_to(tmp_path / "outside")
    assert not put(tmp_path).kept
    assert os.listdir(tmp_path / "outside") == []


def test_the_same_bytes_twice_are_kept_once(tmp_path: Path, folder: Path) -> None:
    put(tmp_path, max_files=1)
    assert put(tmp_path, max_files=1).kept
    assert sorted(os.listdir(folder / str(JOB))) == [SHA256, f"{SHA256}.json"]


def test_a_copy_that_a_power_cut_left_is_cleared_away(tmp_path: Path, folder: Path) -> None:
    (folder / str(OTHER_JOB)).mkdir()
    (folder / str(OTHER_JOB) / ".copying").write_bytes(b"x" * 999)
    assert put(tmp_path, max_files=1).kept
    assert os.listdir(folder / str(OTHER_JOB)) == []


def test_a_link_in_the_place_of_the_bad_file_is_not_followed(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "bad.part").symlink_to("secret")
    with pytest.raises(OSError, match="symbolic"):
        Quarantine(folder, 10, 1000).put(JOB, tmp_path / "bad.part", MEANT, "", "damaged")
    assert os.listdir(folder) == []


@pytest.mark.timeout(10)
def test_a_pipe_in_the_place_of_the_bad_file_holds_nobody_up(tmp_path: Path, folder: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    told = Quarantine(folder, 10, 1000).put(JOB, tmp_path / "pipe", MEANT, SHA256, "digest_mismatch", now=NOW)
    assert not told.kept
    assert not (tmp_path / "pipe").exists()


def test_a_blobs_digest_is_told_in_its_own_kind(tmp_path: Path, folder: Path) -> None:
    meant = planned("config.json", b"{}")
    quarantine = Quarantine(folder, 10, 1000)
    told = quarantine.put(JOB, bad(tmp_path), meant, "f" * 40, "digest_mismatch", "org/model", now=NOW)
    assert (told.expected, told.found, told.location) == (meant.git_sha1, "f" * 40, f"{JOB}/{SHA256}")


@pytest.mark.parametrize("ask", [1, 2, 3], ids=["reading", "copying", "reading the copy"])
def test_behind_a_pulled_brake_the_file_stays_where_it_lies_and_nothing_half_copied_does(
    tmp_path: Path, folder: Path, ask: int
) -> None:
    """Of a large file each of these takes minutes, and the lease may be over."""

    class Pulled(Brake):
        asked = 0

        def check(self) -> None:
            self.asked += 1
            if self.asked == ask:
                self.pull("lease_lost")
            super().check()

    path = bad(tmp_path)
    with pytest.raises(Stopped):
        Quarantine(folder, 10, 1000).put(JOB, path, MEANT, SHA256, "digest_mismatch", brake=Pulled())
    assert path.read_bytes() == BAD
    assert [name for _, _, names in os.walk(folder) for name in names] == []
    assert Quarantine(folder, 10, 1000).put(JOB, path, MEANT, SHA256, "digest_mismatch", brake=Brake()).kept
