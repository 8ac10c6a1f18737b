"""A fetch that is stopped ends within a moment, and one that fails says why; what has landed is kept."""

import errno
import os
import threading
import time
from pathlib import Path

import pytest

from agent.acquire.fetching.pace import Pace
from agent.acquire.terms import Brake, Failed
from tests.agent.acquire.fetching import Fetch
from tests.agent.acquire.test_fetch import BIG, BIG_BYTES, FILES
from tests.hub.contents import Given, weights
from tests.hub.faults import Fault
from tests.hub.hub import Hub
from tests.parts.ports import until


def test_a_file_that_is_wrong_twice_is_handed_over_and_fails(hub: Hub, tmp_path: Path) -> None:
    fetch = Fetch(hub, hub.repo("org/m", FILES), tmp_path)
    hub.fault("resolve", Fault(content=Given(b"[]")), file="config.json")
    assert fetch.run() == "verification_failed"
    assert fetch.wrong == [("config.json", "0637a088a01e8ddab3bf3fa98dbe804cbde1a0dc")]
    assert "config.json" not in fetch.lying
    assert not list((tmp_path / "parts").glob("1.*"))


def test_a_root_that_is_lost_in_between_gets_no_further_file(hub: Hub, tmp_path: Path) -> None:
    files = {f"{n}.txt": b"%d" % n for n in range(20)}
    fetch = Fetch(hub, hub.repo("org/m", files), tmp_path)
    looked = []

    def still() -> None:
        looked.append(1)
        if len(looked) > 5:
            raise Failed("root_unverified", "the marker is gone")

    assert fetch.run(still=still) == "root_unverified"
    assert len(fetch.lying) + len(list((tmp_path / "parts").glob("*.part"))) <= 5


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOSPC, "insufficient_capacity"),
        (errno.EDQUOT, "insufficient_capacity"),
        (errno.EIO, "storage_error"),
        (errno.EROFS, "storage_error"),
    ],
    ids=["full", "quota", "broken", "read-only"],
)
def test_a_disk_that_refuses_is_told_and_what_landed_is_kept(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, code: str
) -> None:
    written = 0
    true_pwrite = os.pwrite

    def pwrite(fd: int, data: memoryview, offset: int) -> int:
        nonlocal written
        written += len(data)
        if written > 400_000:
            raise OSError(number, os.strerror(number))
        return true_pwrite(fd, data, offset)

    fetch = Fetch(hub, hub.repo("org/m", {BIG: weights(BIG_BYTES)}), tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("agent.acquire.fetching.parts.os.pwrite", pwrite)
        assert fetch.run() == code
    if code == "insufficient_capacity":
        assert fetch.failed.numbers["free_bytes"] > 0
        assert 0 < fetch.failed.numbers["missing_bytes"] < BIG_BYTES
    assert fetch.run() == "done"
    assert fetch.right
    assert fetch.tally.bytes_fetched < BIG_BYTES - 300_000


def stalled(hub: Hub) -> None:
    hub.fault("cdn", Fault(stall_at=1000))


def silent(hub: Hub) -> None:
    hub.fault("cdn", Fault(silent=True))


def refused(hub: Hub) -> None:
    hub.fault("cdn", Fault(status=503, headers={"Retry-After": "50"}))


def held(hub: Hub) -> None:
    hub.fault("cdn", Fault(status=429, headers={"Retry-After": "50"}))


def dripping(hub: Hub) -> None:
    hub.cdn.bytes_per_second = 20_000


@pytest.mark.parametrize("where", [stalled, silent, refused, held, dripping], ids=lambda where: where.__name__)
def test_a_pulled_brake_stops_within_a_second(hub: Hub, tmp_path: Path, where: object) -> None:
    """In a blocked read, before the head of an answer, in a wait, in the middle of a slow body."""
    where(hub)  # type: ignore[operator]
    fetch = Fetch(hub, hub.repo("org/m", {BIG: weights(BIG_BYTES)}), tmp_path)
    pulled_at = 0.0

    def pull() -> None:
        nonlocal pulled_at
        pulled_at = time.monotonic()
        fetch.brake.pull("cancelled")

    threading.Timer(0.3, pull).start()
    assert fetch.run() == "cancelled"
    assert time.monotonic() - pulled_at < 1
    assert threading.active_count() < 40


def test_a_pulled_brake_stops_a_fetch_that_waits_for_bandwidth(hub: Hub, tmp_path: Path) -> None:
    fetch = Fetch(hub, hub.repo("org/m", {BIG: weights(BIG_BYTES)}), tmp_path)
    threading.Timer(0.2, fetch.brake.pull, ["lease_lost"]).start()
    began = time.monotonic()
    assert fetch.run(pace=Pace(lambda: 20_000)) == "lease_lost"
    assert time.monotonic() - began < 1.2


def test_a_brake_pulled_before_it_begins_lets_nothing_begin(hub: Hub, tmp_path: Path) -> None:
    brake = Brake()
    brake.pull("released")
    assert Fetch(hub, hub.repo("org/m", FILES), tmp_path, brake=brake).run() == "released"
    assert hub.of() == []


def test_where_the_system_gives_no_more_threads_those_that_run_leave_and_the_next_run_is_whole(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Left to themselves they would write into the same folder beside the next attempt."""
    begun: list[threading.Thread] = []
    true_start = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        if thread.name == "fetch":
            if len(begun) == 4:
                raise RuntimeError("can't start new thread")
            begun.append(thread)
        true_start(thread)

    hub.fault("cdn", Fault(bytes_per_second=100_000))
    fetch = Fetch(hub, hub.repo("org/m", FILES), tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        assert fetch.run() == "storage_error"
    assert [thread.is_alive() for thread in begun] == [False] * 4
    hub.mend()
    assert fetch.run() == "done"
    assert fetch.right


def test_where_not_even_the_helpers_get_a_thread_none_of_them_is_left_behind(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[threading.Thread] = []
    true_start = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        if thread.name == "fetch-writeback":
            raise RuntimeError("can't start new thread")
        begun.append(thread)
        true_start(thread)

    fetch = Fetch(hub, hub.repo("org/m", FILES), tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        assert fetch.run() == "storage_error"
    assert [thread.name for thread in begun if thread.name.startswith("fetch")] == ["fetch-watchdog"]
    until(lambda: not any(thread.is_alive() for thread in begun if thread.name == "fetch-watchdog"), "it looks no more")
    assert fetch.run() == "done"
    assert fetch.right
