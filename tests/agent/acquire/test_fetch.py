"""Bringing the bytes: over many connections, within bounds, each once."""

import os
import threading
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from agent.acquire.fetching.pace import Pace
from agent.acquire.fetching.parts import Part
from agent.acquire.fetching.shelf import Shelf
from agent.acquire.line.limits import Limits
from agent.acquire.terms import Plan, PlannedFile
from tests.agent.acquire.fetching import KIB, LIMITS, Fetch
from tests.hub.contents import Generated, weights
from tests.hub.faults import Fault, Request
from tests.hub.hub import Hub
from tests.hub.repositories import Files

BIG = "model.safetensors"
BIG_BYTES = 700_000
FILES: Files = {
    BIG: weights(BIG_BYTES, seed=1),
    "config.json": b"{}",
    "empty.txt": b"",
    "a/b/c.txt": b"deep",
    "Ünicode & blanks/#100%?.txt": b"odd",
}


TOTAL = sum(len(content) if isinstance(content, bytes) else BIG_BYTES for content in FILES.values())


class AtOnce:
    """Counts how many requests are being answered at one time."""

    def __init__(self, hub: Hub, kind: str, seconds: float = 0.02) -> None:
        self._lock = threading.Lock()
        self.now = self.most = 0
        self._seconds = seconds
        hub.fault(kind, Fault(meanwhile=self._answer))  # type: ignore[arg-type]

    def _answer(self) -> None:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(self._seconds)  # of the server: so that others may come meanwhile
        with self._lock:
            self.now -= 1


def test_every_file_arrives_with_its_bytes(hub: Hub, tmp_path: Path) -> None:
    fetch = Fetch(hub, hub.repo("org/m", FILES), tmp_path)
    assert fetch.run() == "done"
    assert fetch.right
    assert os.listdir(tmp_path / "parts") == []
    tally = fetch.tally
    assert (tally.bytes_done, tally.bytes_fetched, tally.files_done) == (TOTAL, TOTAL, len(FILES))


def test_no_byte_is_asked_for_twice(hub: Hub, tmp_path: Path) -> None:
    fetch = Fetch(hub, hub.repo("org/m", FILES), tmp_path)
    assert fetch.run() == "done"
    assert hub.sent() == TOTAL


def test_a_large_file_comes_in_segments_over_all_connections(hub: Hub, tmp_path: Path) -> None:
    at_once = AtOnce(hub, "cdn")
    assert Fetch(hub, hub.repo("org/m", {BIG: weights(BIG_BYTES)}), tmp_path).run() == "done"
    spans = sorted(request.range for request in hub.of("cdn") if request.range is not None)
    assert spans == [(at, min(at + 64 * KIB, BIG_BYTES) - 1) for at in range(0, BIG_BYTES, 64 * KIB)]
    assert at_once.most == LIMITS.connections


def test_small_files_come_several_at_once(hub: Hub, tmp_path: Path) -> None:
    at_once = AtOnce(hub, "resolve")
    assert Fetch(hub, hub.repo("org/m", {f"{n}.txt": b"%d" % n for n in range(16)}), tmp_path).run() == "done"
    assert at_once.most == LIMITS.connections


def test_a_signed_address_is_good_for_all_segments(hub: Hub, tmp_path: Path) -> None:
    assert Fetch(hub, hub.repo("org/m", {BIG: weights(BIG_BYTES)}), tmp_path).run() == "done"
    assert len(hub.of("resolve")) <= LIMITS.connections < len(hub.of("cdn"))


def test_a_file_of_60_gigabytes_comes_in_segments_like_any_other(hub: Hub, tmp_path: Path) -> None:
    """The Hub's own library refuses more than 50 GB over HTTP."""
    size = 60_000_000_000
    repo = hub.repo("org/m", {BIG: b"of the stand-in"})
    hub.fault("cdn", Fault(content=Generated(size)))
    plan = Plan(repo.id, repo.sha, (PlannedFile(BIG, size, sha256="0" * 64),))
    fetch = Fetch(hub, repo, tmp_path, plan=plan, limits=replace(LIMITS, segment_bytes=Limits().segment_bytes))
    assert fetch.run_until(1_000_000) == "released"
    spans = [request.range for request in hub.of("cdn")]
    assert {end - first + 1 for first, end in filter(None, spans) if end is not None} == {fetch.limits.segment_bytes}
    landed = fetch.tally.bytes_done
    hub.requests.clear()
    assert fetch.run_until(landed + 1_000_000) == "released"
    assert fetch.tally.bytes_fetched < fetch.tally.bytes_done - landed + 1


def test_an_empty_file_is_not_asked_for(hub: Hub, tmp_path: Path) -> None:
    fetch = Fetch(hub, hub.repo("org/m", {"empty.txt": b""}), tmp_path)
    assert fetch.run() == "done"
    assert fetch.right
    assert hub.of() == []


def test_a_plan_of_nothing_is_done(hub: Hub, tmp_path: Path) -> None:
    assert Fetch(hub, hub.repo("org/m", {}), tmp_path).run() == "done"


def test_open_files_are_bounded(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    most, lock, opened, at_once = LIMITS.connections - 1, threading.Lock(), set[int](), []
    open_part, close = Shelf.open_part, Part.close

    def opening(shelf: Shelf, number: int) -> int:
        with lock:
            opened.add(number)
            at_once.append(len(opened))
        return open_part(shelf, number)

    def closing(part: Part) -> None:
        close(part)
        with lock:
            opened.discard(part.number)

    monkeypatch.setattr(Shelf, "open_part", opening)
    monkeypatch.setattr(Part, "close", closing)
    repo = hub.repo("org/m", {f"{n}.txt": b"%d" % n for n in range(40)})
    hub.latency(0.01)  # so that every connection is at one
    fetch = Fetch(hub, repo, tmp_path, limits=replace(LIMITS, open_files=most))
    assert fetch.run() == "done"
    assert len(at_once) == 40
    assert max(at_once) <= most


def test_a_source_without_ranges_gives_the_file_in_one_piece(hub: Hub, tmp_path: Path) -> None:
    fetch = Fetch(hub, hub.repo("org/m", {BIG: weights(BIG_BYTES)}), tmp_path)
    hub.fault("cdn", Fault(ignore_range=True))
    assert fetch.run() == "done"
    assert fetch.right
    whole = [request for request in hub.of("cdn") if request.range is None]
    assert [(request.status, request.bytes_sent) for request in whole] == [(200, BIG_BYTES)]


def test_a_file_that_is_wrong_once_comes_again_and_counts_once(hub: Hub, tmp_path: Path) -> None:
    fetch = Fetch(hub, hub.repo("org/m", FILES), tmp_path)
    hub.fault("cdn", Fault(flip=(100_000,)), times=1, when=lambda asked: asked.range == (64 * KIB, 128 * KIB - 1))
    assert fetch.run() == "done"
    assert fetch.right
    assert fetch.wrong == []
    assert fetch.tally.bytes_done == TOTAL
    assert fetch.tally.bytes_fetched == TOTAL + BIG_BYTES


def test_the_root_is_looked_at_before_each_file(hub: Hub, tmp_path: Path) -> None:
    looked = []
    assert Fetch(hub, hub.repo("org/m", FILES), tmp_path).run(still=lambda: looked.append(1)) == "done"
    assert len(looked) == len(FILES)


def test_the_bandwidth_limit_holds_for_all_connections_together(hub: Hub, tmp_path: Path) -> None:
    fetch = Fetch(hub, hub.repo("org/m", {BIG: weights(BIG_BYTES)}), tmp_path)
    began = time.monotonic()
    assert fetch.run(pace=Pace(lambda: 1_000_000)) == "done"
    assert BIG_BYTES / 1e6 - 0.3 < time.monotonic() - began < 3


def test_a_slow_limit_is_no_stall(hub: Hub, tmp_path: Path) -> None:
    """Less comes in than the watchdog would bear, because we want it so."""
    limits = {"stall": timedelta(seconds=0.4), "drip": timedelta(seconds=0.2), "slowest_bytes_per_second": 1e6}
    fetch = Fetch(hub, hub.repo("org/m", {BIG: weights(100_000)}), tmp_path, limits=replace(LIMITS, **limits))  # type: ignore[arg-type]
    assert fetch.run(pace=Pace(lambda: 100_000)) == "done"


def early(request: Request) -> bool:
    return request.range is not None and request.range[0] == 0


def test_one_slow_connection_does_not_hold_up_the_others(hub: Hub, tmp_path: Path) -> None:
    hub.fault("cdn", Fault(bytes_per_second=200_000), when=early)
    fetch = Fetch(hub, hub.repo("org/m", {BIG: weights(BIG_BYTES)}), tmp_path)
    assert fetch.run() == "done"
    assert fetch.right
    slow = next(request for request in hub.of("cdn") if early(request))
    assert len([request for request in hub.of("cdn") if request.connection == slow.connection]) < 5
