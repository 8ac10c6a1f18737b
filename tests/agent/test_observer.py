"""The loop that looks: facts are large and rare, and nothing that hangs in it can stop a beat."""

import threading
from datetime import datetime, timedelta
from random import Random

import pytest

from agent import protocol, wire
from agent.observer import Observer
from tests.agent.simulated import Answering, Parts, facts, gone, refused, telemetry


def told(parts: Parts) -> int:
    return len(parts.observers_client.of(protocol.FACTS))


def test_facts_are_told_at_the_start_once_a_beat_was_answered(parts: Parts) -> None:
    parts.observer.turn()
    assert told(parts) == 0
    parts.beat()
    parts.observer.turn()
    assert told(parts) == 1


def test_the_same_facts_are_not_told_again(parts: Parts) -> None:
    _settle(parts)
    for _ in range(5):
        parts.clock.pass_(timedelta(seconds=300))
        parts.observer.turn()
    assert parts.looks == 6
    assert told(parts) == 1


def test_a_change_is_told_at_the_next_look(parts: Parts) -> None:
    """Field case 17."""
    _settle(parts)
    parts.hostname = "renamed"
    parts.clock.pass_(timedelta(seconds=300))
    parts.observer.turn()
    assert [body.host.hostname for body in parts.observers_client.of(protocol.FACTS)] == ["server01", "renamed"]


def test_asked_for_facts_it_looks_afresh_and_tells_them(parts: Parts) -> None:
    _settle(parts)
    parts.clock.pass_(timedelta(seconds=20))
    parts.observer.want_facts(parts.clock.at)
    parts.observer.turn()
    assert (parts.looks, told(parts)) == (2, 2)


def test_a_wish_that_crossed_the_facts_on_the_way_is_fulfilled_already(parts: Parts) -> None:
    before = parts.clock.at
    _settle(parts)
    parts.clock.pass_(timedelta(seconds=20))
    parts.observer.want_facts(before)
    parts.observer.turn()
    assert told(parts) == 1


def test_the_reply_to_a_beat_is_such_a_wish_and_the_digest_rides_on_the_beat(parts: Parts) -> None:
    _settle(parts)
    parts.client.reply = wire.BeatReply(heartbeat_interval_seconds=15, telemetry_interval_seconds=60, want_facts=True)
    parts.beat()
    parts.observer.turn()
    assert told(parts) == 2
    assert parts.client.of(protocol.HEARTBEAT)[-1].facts_digest == wire.digest(facts())


def test_facts_that_cannot_be_told_are_tried_again_with_pauses(parts: Parts) -> None:
    parts.observers_client.trouble = lambda _: gone()
    parts.observer.turn()
    parts.beat()
    started = parts.clock.at
    while parts.clock.at < started + 3600:
        parts.clock.pass_(max(parts.observer.turn(), timedelta(milliseconds=1)))
    assert 5 < told(parts) < 60
    assert parts.health.report.observer_error
    parts.observers_client.trouble = lambda _: None
    parts.clock.pass_(timedelta(minutes=5))
    parts.observer.turn()
    assert parts.health.report.observer_error == ""


def test_nothing_is_told_while_beats_are_refused(parts: Parts) -> None:
    """Field case 24."""
    _settle(parts)
    parts.client.trouble = lambda _: refused("node_disabled", 403)
    parts.beat()
    parts.hostname = "renamed"
    parts.clock.pass_(timedelta(seconds=300))
    parts.observer.turn()
    assert told(parts) == 1
    parts.client.trouble = lambda _: None
    parts.beat()
    parts.observer.turn()
    assert told(parts) == 2


@pytest.mark.parametrize("wish", ["none", "facts", "sample"])
def test_a_turn_never_asks_for_no_wait_at_all(parts: Parts, wish: str) -> None:
    """An idle loop must not spin, whatever was wished and could not be had."""
    parts.observer.turn()
    if wish == "facts":
        parts.observer.want_facts(parts.clock.at)
    elif wish == "sample":
        parts.observer.sample_for(parts.clock.at)
    assert parts.observer.turn() > timedelta(seconds=1)


def test_a_driver_that_hangs_stops_no_beat(parts: Parts) -> None:
    """Field case 36: real threads; the look ends only when the test lets it."""
    inside, let_go, stop = threading.Event(), threading.Event(), threading.Event()

    def hang(_: datetime) -> wire.Facts:
        inside.set()
        let_go.wait(20)
        return facts()

    observer = Observer(
        client=Answering(),
        identity=parts.identity,
        health=parts.health,
        clock=parts.clock,
        rng=Random(1),
        gather=hang,
        measure=telemetry,
        interval=timedelta(seconds=300),
    )
    parts.observer = observer
    pulse = parts.another_pulse(parts.client, seed=1)
    thread = threading.Thread(target=observer.run, args=(stop,), daemon=True)
    thread.start()
    try:
        assert inside.wait(5)
        for _ in range(10):
            parts.clock.pass_(pulse.turn())
        assert len(parts.client.of(protocol.HEARTBEAT)) == 10
        assert not parts.health.hangs()
    finally:
        stop.set()
        let_go.set()
        observer.wake()
        thread.join(5)
    assert not thread.is_alive()


def _settle(parts: Parts) -> None:
    parts.observer.turn()
    parts.beat()
    parts.observer.turn()
    assert told(parts) == 1
