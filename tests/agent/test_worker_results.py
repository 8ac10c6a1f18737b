"""How a job ended is told in the wire's words, until it is answered, and once."""

from datetime import timedelta
from typing import Any

import pytest

from agent import wire
from agent.acquire.terms import Failed, Notes
from agent.worker import TYPES
from tests.agent.scripts import Script
from tests.agent.simulated import gone, refused
from tests.agent.working import COMMIT, JOB, LEASE, Workplace, trouble_at


def test_a_claimed_job_runs_and_its_result_is_told_once_and_then_more_is_asked_for(place: Workplace) -> None:
    place.begin(lambda **_: None)
    place.ended()
    place.turn(5)
    (result,) = place.results
    assert (result.lease_id, result.outcome, result.commit) == (LEASE, "succeeded", COMMIT)
    assert [claim.types for claim in place.claims] == [TYPES, TYPES]
    assert [path for path, _ in place.desk.sent if path.endswith("/result")] == [f"/api/v1/agent/jobs/{JOB}/result"]


def test_what_failed_is_told_in_the_wires_words(place: Workplace, script: Script) -> None:
    script.fail = Failed("rate_limited", "Wait.", numbers={"needed_bytes": 1}, retry_after=timedelta(seconds=90))
    place.begin(script)
    script.finish.set()
    place.ended()
    place.turn()
    assert place.results[0].outcome == "failed"
    assert place.results[0].commit == COMMIT
    assert place.results[0].failure == wire.Failure(
        code="rate_limited", detail="Wait.", numbers={"needed_bytes": 1}, retry_after_seconds=90
    )


@pytest.mark.parametrize("bug", [ValueError("x"), OSError(5, "EIO"), MemoryError(), KeyError("k")], ids=repr)
def test_a_bug_fails_the_job_and_not_the_agent(
    place: Workplace, script: Script, bug: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    script.fail = bug
    place.begin(script)
    script.finish.set()
    place.ended()
    place.turn()
    failure = place.results[0].failure
    assert failure is not None
    assert (failure.code, failure.detail) == ("storage_error", f"unexpected: {type(bug).__name__}")
    assert "Traceback" in caplog.text


def test_no_secret_leaves_in_a_failures_words(place: Workplace, script: Script) -> None:
    script.fail = Failed(
        "source_unavailable", "GET https://cdn.example/x?Signature=abc with Bearer hf_verysecret99 failed"
    )
    place.begin(script)
    script.finish.set()
    place.ended()
    place.turn()
    failure = place.results[0].failure
    assert failure is not None
    assert "Signature" not in failure.detail
    assert "verysecret" not in failure.detail


def test_what_was_quarantined_is_told_whichever_way_it_ends(place: Workplace) -> None:
    bad = wire.Quarantined(path="x", size_bytes=1, expected="a", found="b", reason="digest_mismatch")

    def work(*, notes: Notes, **_: Any) -> None:
        notes.quarantined += [bad] * (wire.MAX_QUARANTINED + 5)
        raise Failed("verification_failed", "twice wrong")

    place.begin(work)
    place.ended()
    place.turn()
    assert place.results[0].quarantined == [bad] * wire.MAX_QUARANTINED


def test_a_result_is_told_until_it_is_answered_and_nothing_is_begun_before(place: Workplace) -> None:
    place.desk.trouble = trouble_at("/result", gone())
    place.begin(lambda **_: None)
    place.ended()
    place.turn(60, pass_=10)
    place.worker.work()
    place.turn(2, pass_=10)
    assert 8 <= len(place.results) <= 30
    assert {claim.types[0] if claim.types else "" for claim in place.claims[1:]} == {""}
    place.desk.trouble = lambda _: None
    place.turn(7, pass_=10)
    told = len(place.results)
    place.turn(20, pass_=10)
    assert len(place.results) == told
    assert len({result.lease_id for result in place.results}) == 1


def test_a_result_outlives_a_control_plane_that_was_away_and_is_told_at_once_when_it_is_back(place: Workplace) -> None:
    place.begin(lambda **_: None)
    place.desk.trouble = lambda _: gone()
    place.ended()
    place.turn(40, pass_=30)
    place.worker.online(False)
    place.turn(5, pass_=30)
    place.desk.trouble = lambda _: None
    before = len(place.results)
    place.worker.online(True)
    place.turn()
    assert len(place.results) == before + 1
    place.turn(10, pass_=30)
    assert len(place.results) == before + 1


@pytest.mark.parametrize("code", ["lease_lost", "not_found", "state_conflict"])
def test_a_result_that_will_never_be_taken_is_let_go(place: Workplace, code: str) -> None:
    place.desk.trouble = trouble_at("/result", refused(code, 409))
    place.begin(lambda **_: None)
    place.ended()
    place.turn(20, pass_=10)
    assert len(place.results) == 1
    assert place.claims[-1].types == TYPES


@pytest.mark.parametrize("code", ["invalid", "malformed", "body_too_large"])
def test_a_result_that_is_out_of_shape_is_told_as_a_failure_which_costs_an_attempt(place: Workplace, code: str) -> None:
    """Given out again under the same process start, the job would begin for ever and cost nothing."""
    answers = [refused(code, 400), None]
    place.desk.trouble = lambda path: answers.pop(0) if path.endswith("/result") else None
    place.begin(lambda **_: None)
    place.ended()
    place.turn(20, pass_=10)
    assert [result.outcome for result in place.results] == ["succeeded", "failed"]
    failure = place.results[1].failure
    assert failure is not None
    assert failure.code == "storage_error"
    assert f"because of {code}" in failure.detail
    assert place.results[1].lease_id == LEASE
    assert place.claims[-1].types == TYPES


def test_a_failure_that_is_not_taken_either_is_let_go(place: Workplace) -> None:
    place.desk.trouble = trouble_at("/result", refused("invalid", 400))
    place.begin(lambda **_: None)
    place.ended()
    place.turn(20, pass_=10)
    assert len(place.results) == 2
    assert place.claims[-1].types == TYPES


@pytest.mark.parametrize("code", ["identity_conflict", "node_disabled"])
def test_a_refusal_of_the_node_is_no_refusal_of_the_result(place: Workplace, code: str) -> None:
    place.desk.trouble = trouble_at("/result", refused(code, 409))
    place.begin(lambda **_: None)
    place.ended()
    place.turn(60, pass_=10)
    assert 5 <= len(place.results) <= 12, "slowly"
    place.desk.trouble = lambda _: None
    place.turn(7, pass_=10)
    assert place.claims[-1].types == TYPES


def test_a_stop_tells_a_result_that_waits(place: Workplace) -> None:
    place.desk.trouble = trouble_at("/result", gone())
    place.begin(lambda **_: None)
    place.ended()
    place.turn(2)
    place.desk.trouble = lambda _: None
    place.worker.release()
    assert [result.outcome for result in place.results] == ["succeeded", "succeeded"]
