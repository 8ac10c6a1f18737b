"""The beat loop on told time: what it sends, how long it waits, and how it comes back."""

import logging
from datetime import timedelta
from pathlib import Path

import pytest

from agent import protocol, wire
from agent.trouble import Trouble
from tests.agent.scripted import CREDENTIAL, TOKEN
from tests.agent.simulated import BOOT, Parts, gateway, gone, refused, telemetry

REFUSALS = [
    ("credential_unknown", 401),
    ("credential_revoked", 401),
    ("credential_superseded", 401),
    ("node_disabled", 403),
    ("identity_conflict", 409),
    ("node_retired", 410),
    ("protocol_unsupported", 426),
]


def test_a_beat_says_who_speaks_and_how_often_it_spoke(parts: Parts) -> None:
    for _ in range(3):
        parts.beat()
    beats = parts.client.of(protocol.HEARTBEAT)
    assert [beat.sequence for beat in beats] == [1, 2, 3]
    assert {beat.boot_id for beat in beats} == {BOOT}
    assert parts.client.bearers(protocol.HEARTBEAT) == [CREDENTIAL] * 3


def test_a_failed_beat_uses_up_its_number(parts: Parts) -> None:
    parts.client.trouble = lambda _: gone()
    parts.beat()
    parts.client.trouble = lambda _: None
    parts.beat()
    assert [beat.sequence for beat in parts.client.of(protocol.HEARTBEAT)] == [1, 2]


@pytest.mark.parametrize("told", [5.0, 15.0, 120.0])
def test_the_told_interval_is_kept_within_a_tenth(parts: Parts, told: float) -> None:
    parts.client.reply = wire.BeatReply(heartbeat_interval_seconds=told, telemetry_interval_seconds=60)
    parts.beat()
    for _ in range(50):
        assert 0.9 * told <= parts.beat().total_seconds() <= 1.1 * told


def test_an_interval_of_nothing_is_no_order_to_run_hot(parts: Parts) -> None:
    parts.client.reply = wire.BeatReply(heartbeat_interval_seconds=0, telemetry_interval_seconds=0)
    parts.beat()
    assert parts.beat() >= timedelta(seconds=0.9)


def test_the_first_beat_comes_within_a_second(parts: Parts) -> None:
    assert all(timedelta() <= parts.pulse.first_wait() <= timedelta(seconds=1) for _ in range(100))


def test_a_node_without_a_credential_joins_and_beats_in_one_turn(tmp_path: Path) -> None:
    parts = Parts(tmp_path, enrolled=False)
    parts.beat()
    assert [path for path, _, _ in parts.client.sent] == [protocol.ENROLL, protocol.HEARTBEAT]
    assert parts.client.bearers(protocol.HEARTBEAT) == [CREDENTIAL]


@pytest.mark.parametrize("code", ["token_unknown", "token_used", "token_expired", "token_revoked"])
def test_a_refused_token_parks_and_says_which_way(tmp_path: Path, code: str, caplog: pytest.LogCaptureFixture) -> None:
    """Field case 20: the daemon asks again slowly where the command would end."""
    parts = Parts(tmp_path, enrolled=False)
    parts.client.trouble = lambda _: refused(code, 409)
    parts.hour()
    assert parts.pulse.parked
    assert parts.health.report.code == code
    assert code in caplog.text
    assert TOKEN not in caplog.text
    assert len(parts.client.sent) < 30


@pytest.mark.parametrize(("code", "status"), REFUSALS)
def test_a_refusal_parks_with_few_requests_in_an_hour(parts: Parts, code: str, status: int) -> None:
    """Field cases 19 and 23."""
    parts.client.trouble = lambda _: refused(code, status)
    waits = parts.hour()
    assert 6 <= len(parts.client.sent) <= 25
    assert max(waits) <= timedelta(minutes=15)
    report = parts.health.report
    assert (report.state, report.code) == ("parked", code)


@pytest.mark.parametrize("seed", range(20))
def test_no_luck_with_the_dice_makes_a_parked_agent_hammer(tmp_path: Path, seed: int) -> None:
    """Field case 19."""
    parts = Parts(tmp_path, seed=seed)
    parts.client.trouble = lambda _: refused("node_retired", 410)
    parts.hour()
    assert len(parts.client.sent) <= 30


def test_a_refusal_is_logged_once_and_then_at_most_once_an_hour(parts: Parts, caplog: pytest.LogCaptureFixture) -> None:
    """Field case 23."""
    parts.client.trouble = lambda _: refused("node_retired", 410)
    parts.hour()
    assert len(_errors(caplog)) == 1
    parts.hour()
    parts.hour()
    assert 2 <= len(_errors(caplog)) <= 3


@pytest.mark.parametrize(("code", "status"), REFUSALS)
def test_a_parked_agent_recovers_by_itself_when_a_beat_is_answered(parts: Parts, code: str, status: int) -> None:
    parts.client.trouble = lambda _: refused(code, status)
    parts.hour()
    parts.client.trouble = lambda _: None
    parts.beat()
    assert not parts.pulse.parked
    assert parts.health.report.state == "healthy"
    assert parts.beat() <= timedelta(seconds=16.5)


def test_one_401_does_not_cost_the_credential(parts: Parts) -> None:
    """Field case 18."""
    answers: list[Trouble | None] = [refused("credential_unknown"), None]
    parts.client.trouble = lambda _: answers.pop(0)
    parts.beat()
    assert parts.beat() <= timedelta(seconds=16.5)
    assert parts.client.bearers(protocol.HEARTBEAT) == [CREDENTIAL, CREDENTIAL]
    assert parts.state.credential.peek() == CREDENTIAL


def test_five_minutes_of_503_end_in_a_beat_within_a_minute(parts: Parts) -> None:
    """Field case 40."""
    parts.client.trouble = lambda _: gateway()
    until = parts.clock.at + 300
    while parts.clock.at < until:
        assert parts.beat() <= timedelta(seconds=60)
    assert len(parts.client.sent) < 60
    parts.client.trouble = lambda _: None
    parts.beat()
    assert parts.health.report.state == "healthy"


@pytest.mark.parametrize("told", [5.0, 15.0, 120.0])
def test_after_an_outage_it_is_back_before_its_fresh_window_ends(parts: Parts, told: float) -> None:
    """Field case 33: a control plane that was away counts anew, three intervals until stale."""
    parts.client.reply = wire.BeatReply(heartbeat_interval_seconds=told, telemetry_interval_seconds=60)
    parts.beat()
    parts.client.trouble = lambda _: gone()
    waits = [parts.beat().total_seconds() for _ in range(100)]
    assert max(waits) <= min(2 * told, 60)


def test_retry_after_is_honoured(parts: Parts) -> None:
    wait = timedelta(seconds=100)
    parts.client.trouble = lambda _: refused("throttled", 429, retryable=True, retry_after=wait)
    assert all(parts.beat() >= wait for _ in range(5))
    assert not parts.pulse.parked


def test_an_outage_is_logged_once_and_so_is_the_return(parts: Parts, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    parts.beat()
    parts.client.trouble = lambda _: gone()
    for _ in range(10):
        parts.beat()
    parts.client.trouble = lambda _: None
    parts.beat()
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 3
    assert said[0] == "online"
    assert "cannot be reached" in said[1]
    assert said[2].startswith("answered again after ")


def test_telemetry_rides_on_a_beat_once_an_interval(parts: Parts) -> None:
    started = parts.clock.at
    while parts.clock.at < started + 600:
        wait = parts.pulse.turn()
        parts.clock.pass_(wait - timedelta(seconds=1))
        parts.observer.turn()  # in its own thread it wakes up in time
        parts.clock.pass_(timedelta(seconds=1))
    samples = [beat.telemetry for beat in parts.client.of(protocol.HEARTBEAT) if beat.telemetry]
    assert 9 <= len(samples) <= 12
    assert len({sample.at for sample in samples}) == len(samples)


def test_a_sample_of_long_ago_is_not_told_as_news(parts: Parts) -> None:
    parts.beat()
    parts.observer.sample = (parts.clock.at, telemetry(parts.clock.now()))
    parts.client.trouble = lambda _: gone()
    parts.clock.pass_(timedelta(minutes=10))
    parts.beat()
    assert parts.client.of(protocol.HEARTBEAT)[-1].telemetry is None


def test_a_sample_whose_beat_was_lost_is_sent_again(parts: Parts) -> None:
    parts.beat()
    parts.observer.sample = (parts.clock.at, telemetry(parts.clock.now()))
    parts.client.trouble = lambda _: gone()
    parts.beat()
    parts.client.trouble = lambda _: None
    parts.beat()
    parts.beat()
    assert [beat.telemetry is not None for beat in parts.client.of(protocol.HEARTBEAT)] == [False, True, True, False]


@pytest.mark.parametrize("days", [-1, 1])
def test_a_wrong_clock_is_warned_of_once_and_changes_no_wait(
    parts: Parts, days: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Field case 21."""
    parts.client.skew = timedelta(days=days)
    parts.beat()
    assert parts.beat() <= timedelta(seconds=16.5)
    assert len([r for r in caplog.records if "clock differs" in r.getMessage()]) == 1


def _errors(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.levelno >= logging.ERROR]
