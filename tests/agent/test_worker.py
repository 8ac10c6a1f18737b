"""The loop that works, on told time: when it claims, and how it waits when it may not."""

import logging
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from agent import protocol, wire
from agent.worker import TYPES
from tests.agent.simulated import BOOT, Parts, gateway, gone, refused
from tests.agent.working import Workplace, job


def test_nothing_is_claimed_before_a_beat_was_answered(place: Workplace) -> None:
    place.turn(5, pass_=100)
    assert place.claims == []
    place.worker.online(True)
    place.turn()
    assert [claim.boot_id for claim in place.claims] == [BOOT]


def test_an_agent_without_a_root_asks_for_no_job(place: Workplace) -> None:
    place.worker.online(True)
    place.turn(3)
    assert [(claim.types, claim.proofs) for claim in place.claims] == [([], [])]


@pytest.mark.parametrize(("told", "least", "most"), [(2, 1.8, 2.2), (0, 0.9, 1.1), (10**6, 3240, 3960)])
def test_the_next_claim_comes_when_it_was_told_to(place: Workplace, told: float, least: float, most: float) -> None:
    place.desk.claims.append(wire.ClaimReply(look_again_seconds=told))
    place.worker.online(True)
    started = place.clock.at
    wait = place.turn()
    while len(place.claims) < 2:
        place.clock.pass_(wait)
        wait = place.turn()
    assert least <= place.clock.at - started <= most


def test_word_of_work_is_a_claim_at_once(place: Workplace) -> None:
    place.ready()
    place.turn()
    assert place.claims == []
    place.worker.work()
    place.turn()
    assert [claim.types for claim in place.claims] == [TYPES]


@pytest.mark.parametrize("trouble", [gone, gateway], ids=["gone", "gateway"])
def test_a_control_plane_that_fails_is_asked_with_pauses(place: Workplace, trouble: object) -> None:
    place.ready()
    place.desk.trouble = lambda _: trouble()  # type: ignore[operator]
    place.worker.work()
    until_ = place.clock.at + 3600
    while place.clock.at < until_:
        place.clock.pass_(max(place.turn(), timedelta(milliseconds=1)))
    assert 60 <= len(place.claims) <= 200
    place.desk.trouble = lambda _: None
    place.turn(2, pass_=60)
    assert place.claims[-1].types == TYPES, "what waited still does"


def test_retry_after_is_heeded(place: Workplace) -> None:
    place.ready()
    place.desk.trouble = lambda _: refused("throttled", 429, retryable=True, retry_after=timedelta(seconds=120))
    place.worker.work()
    place.turn(12, pass_=10)
    assert len(place.claims) == 1
    place.turn(2, pass_=10)
    assert len(place.claims) == 2


@pytest.mark.parametrize("code", ["node_disabled", "credential_revoked", "identity_conflict"])
def test_a_refusal_holds_until_a_beat_is_answered_again(place: Workplace, code: str) -> None:
    place.ready()
    place.desk.trouble = lambda _: refused(code, 409)
    place.worker.work()
    place.turn(100, pass_=60)
    assert len(place.claims) == 1
    place.desk.trouble = lambda _: None
    place.worker.online(True)
    place.turn(2)
    assert len(place.claims) == 2


def test_a_node_whose_beats_are_not_answered_is_quiet_and_claims_as_soon_as_they_are(place: Workplace) -> None:
    place.ready()
    place.worker.online(False)
    place.worker.work()
    place.turn(10, pass_=60)
    assert place.claims == []
    place.worker.online(True)
    assert place.wakes.is_set()
    place.turn(2)
    assert len(place.claims) == 1


def test_pauses_from_before_do_not_count_when_beats_are_answered_again(place: Workplace) -> None:
    place.ready()
    place.desk.trouble = lambda _: gone()
    place.worker.work()
    place.turn(20, pass_=60)
    place.turn()
    place.worker.online(False)
    place.desk.trouble = lambda _: None
    place.worker.online(True)
    before = len(place.claims)
    place.turn(2)
    assert len(place.claims) == before + 1


def test_a_trouble_is_logged_once(place: Workplace, caplog: pytest.LogCaptureFixture) -> None:
    place.ready()
    place.desk.trouble = lambda _: gone()
    place.worker.work()
    with caplog.at_level(logging.WARNING):
        place.turn(50, pass_=30)
    assert len([r for r in caplog.records if "could not be asked for" in r.message]) == 1


def test_a_job_is_not_begun_where_none_was_asked_for(place: Workplace) -> None:
    place.ready(fault="fuse")
    begun = []
    place.work = lambda **_: begun.append(1)
    place.desk.claims.append(wire.ClaimReply(job=job()))
    place.worker.work()
    place.turn(3)
    assert begun == []


@pytest.mark.parametrize("wish", ["none", "work", "look"])
def test_an_idle_worker_does_not_spin(place: Workplace, wish: str) -> None:
    place.ready()
    if wish == "work":
        place.worker.work()
    elif wish == "look":
        place.lookout.soon()
    place.turn(2)
    assert place.turn() > timedelta(seconds=30)


def test_without_a_root_nothing_is_due_but_the_next_claim(place: Workplace) -> None:
    place.worker.online(True)
    place.turn()
    assert place.turn() > timedelta(seconds=200)


def test_a_beats_reply_wakes_the_worker(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    parts.beat()
    parts.worker.turn()
    assert len(parts.workers_client.of(protocol.CLAIM)) == 1
    parts.beat()
    parts.worker.turn()
    assert len(parts.workers_client.of(protocol.CLAIM)) == 1
    parts.client.reply = wire.BeatReply(heartbeat_interval_seconds=15, telemetry_interval_seconds=60, work=True)
    parts.beat()
    parts.worker.turn()
    assert len(parts.workers_client.of(protocol.CLAIM)) == 2


def test_the_thread_ends_when_it_is_told_to(place: Workplace) -> None:
    stop = threading.Event()
    thread = threading.Thread(target=place.worker.run, args=(stop,), daemon=True)
    thread.start()
    stop.set()
    place.worker.wake()
    thread.join(5)
    assert not thread.is_alive()
