"""A disk that is full, read-only or gone: the job says so with numbers, keeps what it has, and writes nowhere else."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.acquire.terms import Brake, Failed, Stopped
from tests.agent.acquire.acquiring import BIG, FILES, REPO, bytes_of, lying_in, tree
from tests.agent.acquire.attempts import LIMITS, Attempt, Ordered
from tests.hub.contents import weights
from tests.hub.faults import Fault
from tests.hub.hub import Hub
from tests.parts import disks
from tests.parts.disks import MIB
from tests.parts.ports import until

SIZE = 6 * MIB


@pytest.fixture(params=["memory", "ext4"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A disk of 16 MiB."""
    at = tmp_path / "volumes" / "root"
    if request.param == "memory":
        disk = disks.memory(at, 16 * MIB)
    else:
        disk = disks.image(at, 16 * MIB, file=tmp_path.parent / f"{tmp_path.name}.img")
    with disk:
        yield at


def test_what_does_not_fit_is_refused_with_numbers_before_a_byte_is_asked_for(hub: Hub, disk: Path) -> None:
    repo = hub.repo(REPO, {BIG: weights(20 * MIB, seed=1)})
    job = Ordered(hub, disk, repo, reserve_bytes=MIB)
    with pytest.raises(Failed) as failed:
        job.run()
    assert failed.value.code == "insufficient_capacity"
    numbers = failed.value.numbers
    assert numbers["needed_bytes"] == 21 * MIB
    assert 10 * MIB < numbers["free_bytes"] < 16 * MIB
    assert hub.of("cdn", "resolve") == []


def test_the_reserve_and_what_other_jobs_will_write_count(hub: Hub, disk: Path) -> None:
    repo = hub.repo(REPO, {BIG: weights(SIZE, seed=1)})
    tight = Ordered(hub, disk, repo, reserve_bytes=4 * MIB, more={"reserved_bytes": 6 * MIB})
    with pytest.raises(Failed) as failed:
        tight.run()
    assert failed.value.numbers["needed_bytes"] == 16 * MIB
    tight.more = {"reserved_bytes": 1 * MIB}
    assert tight.run().outcome == "succeeded"


@pytest.mark.parametrize("way", [".partial", "models", "models/org"])
def test_another_disk_on_the_way_to_the_snapshots_place_is_told_before_a_byte_is_asked_for(
    hub: Hub, root: Path, way: str
) -> None:
    """One rename publishes, and none leaves a disk."""
    job = Ordered(hub, root, hub.repo(REPO, FILES))
    with disks.memory(root / way, MIB), pytest.raises(Failed, match=f"{way} is a disk") as failed:
        job.run()
    assert failed.value.code == "storage_error"
    assert hub.of("cdn", "resolve") == []
    assert job.run().outcome == "succeeded"


def test_a_disk_that_fills_up_keeps_the_partial_and_goes_on_when_there_is_room(
    hub: Hub, disk: Path, tmp_path: Path
) -> None:
    """Field case 61."""
    repo = hub.repo(REPO, {BIG: weights(SIZE, seed=1)})
    fillers: list[Path] = []
    hub.fault("cdn", Fault(meanwhile=lambda: fillers.append(disks.fill(disk))), after=12, times=1)
    beside = tree(tmp_path, but=disk)
    job = Ordered(hub, disk, repo)
    with pytest.raises(Failed) as failed:
        job.run()
    assert failed.value.code == "insufficient_capacity"
    assert failed.value.numbers["free_bytes"] < MIB
    kept = sum(path.stat().st_blocks * 512 for path in (disk / ".partial" / str(job.job_id)).rglob("*.part"))
    assert kept >= 2 * MIB
    assert not job.published.exists()
    assert tree(tmp_path, but=disk) == beside
    sent = hub.sent()
    until(lambda: fillers, "the disk was filled")  # the last bytes of it may come after the job has noticed
    fillers[0].unlink()
    result = job.run()
    assert result.published is not None
    assert lying_in(job.published) == bytes_of(repo)
    assert hub.sent() - sent <= SIZE - kept + LIMITS.connections * LIMITS.segment_bytes


def test_too_few_inodes_are_told_before_a_byte_is_asked_for(hub: Hub, tmp_path: Path) -> None:
    repo = hub.repo(REPO, {f"{n}.json": b"{}" for n in range(100)})
    with disks.memory(tmp_path / "volumes" / "root", 16 * MIB, inodes=50) as root:
        with pytest.raises(Failed) as failed:
            Ordered(hub, root, repo).run()
        assert failed.value.code == "insufficient_capacity"
        assert failed.value.numbers["inodes_needed"] > failed.value.numbers["inodes_free"]
        assert hub.of("resolve") == []


def test_inodes_that_run_out_in_the_middle_are_a_full_disk(hub: Hub, tmp_path: Path) -> None:
    repo = hub.repo(REPO, {f"{n}.json": b"{}" for n in range(40)})
    with disks.memory(tmp_path / "volumes" / "root", 16 * MIB, inodes=400) as root:

        def use_up() -> None:
            for number in range(1000):
                try:
                    (root / f"taken-{number}").touch()
                except OSError:
                    return

        hub.fault("resolve", Fault(meanwhile=use_up), after=5, times=1)
        job = Ordered(hub, root, repo)
        with pytest.raises(Failed) as failed:
            job.run()
        assert failed.value.code == "insufficient_capacity"
        for path in root.glob("taken-*"):
            path.unlink()
        job.run()
        assert lying_in(job.published) == bytes_of(repo)


@pytest.mark.parametrize("refused", [errno.ENOSPC, errno.EMFILE, errno.EIO], ids=errno.errorcode.get)
def test_a_part_that_cannot_be_opened_now_is_kept_and_gone_on_with(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: int
) -> None:
    repo = hub.repo(REPO, {BIG: weights(SIZE, seed=1)})
    attempt = Attempt(hub, tmp_path / "root", repo)
    hub.fault("cdn", Fault(meanwhile=lambda: attempt.brake.pull("released")), after=12, times=1)
    with pytest.raises(Stopped):
        attempt.run()
    attempt.brake = Brake()
    sent = hub.sent()
    real = os.open

    def refuse(path: Any, *arguments: Any, **options: Any) -> int:
        if str(path).endswith(".part"):
            raise OSError(refused, os.strerror(refused), path)
        return real(path, *arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refuse)
        assert attempt.run() == ("insufficient_capacity" if refused == errno.ENOSPC else "storage_error")
    assert attempt.run() == "published"
    assert lying_in(attempt.published) == bytes_of(repo)
    assert sent > SIZE // 4
    assert hub.sent() - SIZE <= LIMITS.connections * LIMITS.segment_bytes


def test_a_read_only_disk_fails_in_passing_and_takes_the_snapshot_when_it_is_writable(hub: Hub, tmp_path: Path) -> None:
    repo = hub.repo(REPO, FILES)
    with disks.memory(tmp_path / "volumes" / "root", 16 * MIB) as root:
        job = Ordered(hub, root, repo)
        disks.remount(root, "ro")
        with pytest.raises(Failed) as failed:
            job.run()
        assert failed.value.code == "storage_error"
        assert hub.of("cdn", "resolve") == []
        disks.remount(root, "rw")
        job.run()
        assert lying_in(job.published) == bytes_of(repo)


def test_where_links_and_renames_cross_no_mount_the_snapshot_is_published_all_the_same(
    hub: Hub, tmp_path: Path
) -> None:
    """The root is mapped into a container; another mapping of the same disk beside it is another world."""
    repo = hub.repo(REPO, FILES)
    (tmp_path / "host").mkdir()
    with disks.again(tmp_path / "host", tmp_path / "volumes" / "root") as root:
        job = Ordered(hub, root, repo)
        job.run()
        assert lying_in(job.published) == bytes_of(repo)
        assert lying_in(tmp_path / "host" / "models" / REPO / repo.sha) == bytes_of(repo)
