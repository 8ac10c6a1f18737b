"""The beat loop on told time: what it sends, how long it waits, and how it comes back."""

import logging
from datetime import timedelta
from heapq import heappop, heappush
from pathlib import Path

import pytest

from agent import protocol, wire
from agent.trouble import Trouble
from tests.agent.scripted import CREDENTIAL, RENEWED, TOKEN
from tests.agent.simulated import BOOT, Answering, Parts, gateway, gone, refused, telemetry

HOUR = 3600.0
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
    _hour(parts)
    assert parts.pulse.parked
    assert parts.health.report.code == code
    assert code in caplog.text
    assert TOKEN not in caplog.text
    assert len(parts.client.sent) < 30


@pytest.mark.parametrize(("code", "status"), REFUSALS)
def test_a_refusal_parks_with_few_requests_in_an_hour(parts: Parts, code: str, status: int) -> None:
    """Field cases 19 and 23."""
    parts.client.trouble = lambda _: refused(code, status)
    waits = _hour(parts)
    assert 6 <= len(parts.client.sent) <= 25
    assert max(waits) <= timedelta(minutes=15)
    report = parts.health.report
    assert (report.state, report.code) == ("parked", code)


@pytest.mark.parametrize("seed", range(20))
def test_no_luck_with_the_dice_makes_a_parked_agent_hammer(tmp_path: Path, seed: int) -> None:
    """Field case 19."""
    parts = Parts(tmp_path, seed=seed)
    parts.client.trouble = lambda _: refused("node_retired", 410)
    _hour(parts)
    assert len(parts.client.sent) <= 30


def test_a_refusal_is_logged_once_and_then_at_most_once_an_hour(parts: Parts, caplog: pytest.LogCaptureFixture) -> None:
    """Field case 23."""
    parts.client.trouble = lambda _: refused("node_retired", 410)
    _hour(parts)
    assert len(_errors(caplog)) == 1
    _hour(parts)
    _hour(parts)
    assert 2 <= len(_errors(caplog)) <= 3


@pytest.mark.parametrize(("code", "status"), REFUSALS)
def test_a_parked_agent_recovers_by_itself_when_a_beat_is_answered(parts: Parts, code: str, status: int) -> None:
    parts.client.trouble = lambda _: refused(code, status)
    _hour(parts)
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


def test_a_credential_replaced_meanwhile_is_used_with_the_next_beat(parts: Parts) -> None:
    parts.client.trouble = lambda _: refused("credential_superseded")
    parts.beat()
    (parts.state.folder / "node-credential").write_text(RENEWED)
    parts.client.trouble = lambda _: None
    parts.beat()
    assert parts.client.bearers(protocol.HEARTBEAT) == [CREDENTIAL, RENEWED]


def test_told_to_renew_it_beats_with_the_new_credential(parts: Parts) -> None:
    parts.client.reply = wire.BeatReply(
        heartbeat_interval_seconds=15, telemetry_interval_seconds=60, renew_credential=True
    )
    parts.beat()
    parts.beat()
    assert parts.client.bearers(protocol.HEARTBEAT) == [CREDENTIAL, RENEWED]
    assert parts.state.credential.peek() == RENEWED


def test_a_renewal_that_fails_is_not_tried_with_every_beat_and_costs_none(parts: Parts) -> None:
    parts.client.reply = wire.BeatReply(
        heartbeat_interval_seconds=15, telemetry_interval_seconds=60, renew_credential=True
    )
    parts.client.trouble = lambda path: gone() if path == protocol.CREDENTIAL else None
    _hour(parts)
    assert len(parts.client.of(protocol.CREDENTIAL)) < 25
    assert len(parts.client.of(protocol.HEARTBEAT)) > 200
    assert parts.health.report.state == "healthy"


def test_a_revoked_node_with_a_fresh_invitation_joins_again_as_the_same_node(tmp_path: Path) -> None:
    parts = Parts(tmp_path, token=TOKEN)
    parts.client.issued = [RENEWED]
    beats: list[Trouble | None] = [refused("credential_revoked"), None]
    parts.client.trouble = lambda path: beats.pop(0) if path == protocol.HEARTBEAT else None
    parts.beat()
    assert parts.client.bearers(protocol.HEARTBEAT) == [CREDENTIAL, RENEWED]
    assert parts.client.of(protocol.ENROLL)[0].node_id == parts.identity.node_id


def test_a_spent_token_is_tried_once_and_the_revocation_is_what_is_told(tmp_path: Path) -> None:
    parts = Parts(tmp_path, token=TOKEN)
    parts.client.trouble = lambda path: (
        refused("token_used", 409) if path == protocol.ENROLL else refused("credential_revoked")
    )
    _hour(parts)
    assert len(parts.client.of(protocol.ENROLL)) == 1
    assert parts.health.report.code == "credential_revoked"
    assert parts.state.credential.peek() == CREDENTIAL


@pytest.mark.parametrize("code", ["credential_superseded", "node_disabled", "identity_conflict"])
def test_other_refusals_never_spend_an_invitation(tmp_path: Path, code: str) -> None:
    parts = Parts(tmp_path, token=TOKEN)
    parts.client.trouble = lambda _: refused(code)
    parts.beat()
    assert parts.client.of(protocol.ENROLL) == []


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


def test_two_hundred_agents_come_back_from_an_outage_spread_out(parts: Parts) -> None:
    """Field case 32: the control plane is away for four minutes; seen from the moment it is back."""
    arrivals = _crowd(parts, outage=(30.0, 270.0), until=330.0)
    assert _peak_over_mean([at for at in arrivals if at >= 270], 270, 330) < 3


def test_two_hundred_agents_powered_on_together_do_not_beat_together(parts: Parts) -> None:
    """Field case 32: from the second beat on, a rack is spread over the interval."""
    arrivals = _crowd(parts, outage=None, until=120.0)
    assert _peak_over_mean([at for at in arrivals if 15 <= at < 120], 15, 120) < 3


def _crowd(parts: Parts, *, outage: tuple[float, float] | None, until: float) -> list[float]:
    """When each beat of 200 agents reached a control plane, from a common start at 0."""
    begin = parts.clock.at
    arrivals: list[float] = []
    agents = []
    for number in range(200):
        client = Answering()

        def trouble(_: str) -> Trouble | None:
            at = parts.clock.at - begin
            if outage and outage[0] <= at < outage[1]:
                return gone()
            arrivals.append(at)
            return None

        client.trouble = trouble
        agents.append(parts.another_pulse(client, seed=number))
    queue: list[tuple[float, int]] = []
    for number, agent in enumerate(agents):
        heappush(queue, (agent.first_wait().total_seconds(), number))
    while queue:
        at, number = heappop(queue)
        if at >= until:
            break
        parts.clock.at = begin + at
        heappush(queue, (at + agents[number].turn().total_seconds(), number))
    return arrivals


def _peak_over_mean(arrivals: list[float], start: float, end: float) -> float:
    seconds = [0] * int(end - start)
    for at in arrivals:
        seconds[int(at - start)] += 1
    return max(seconds) / (sum(seconds) / len(seconds))


def _hour(parts: Parts) -> list[timedelta]:
    until = parts.clock.at + HOUR
    waits = []
    while parts.clock.at < until:
        waits.append(parts.beat())
    return waits


def _errors(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.levelno >= logging.ERROR]
