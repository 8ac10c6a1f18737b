"""A job under its lease: it runs, is told of while it runs, and stops in time when the lease cannot be kept."""

from typing import Any

import pytest

from agent import wire
from agent.trouble import Trouble
from agent.worker import TYPES
from tests.agent.scripts import Script
from tests.agent.simulated import gateway, gone, refused
from tests.agent.working import COMMIT, JOB, Workplace, trouble_at
from tests.parts.ports import until


def test_the_commit_is_told_and_answered_before_the_job_goes_on(place: Workplace, script: Script) -> None:
    script.tell_first = True
    place.desk.trouble = trouble_at("/progress", gone())
    place.begin(script)
    assert script.started.wait(5)
    place.turn(5, pass_=1)
    assert script.told == 0
    place.desk.trouble = lambda _: None
    place.turn(20, pass_=1)
    until(lambda: script.told == 1, "the job goes on")
    assert place.progress[-1].commit == COMMIT


def test_the_lease_lives_as_long_as_progress_is_answered(place: Workplace, script: Script) -> None:
    place.begin(script, lease_seconds=60)
    place.turn(600, pass_=1)
    assert script.running
    assert 28 <= len(place.progress) <= 33, "at least every third of it, and no flood while nothing moves"
    script.finish.set()
    place.ended()
    place.turn()
    assert [result.outcome for result in place.results] == ["succeeded"]


def test_the_answers_length_of_the_lease_counts_from_then_on(place: Workplace, script: Script) -> None:
    place.desk.progress = wire.ProgressReply(lease_seconds=600)
    place.begin(script, lease_seconds=30)
    place.turn(400, pass_=1)
    assert script.running
    assert len(place.progress) <= 4


@pytest.mark.parametrize("trouble", [gone(), gateway(), refused("node_disabled", 403)], ids=["gone", "502", "disabled"])
def test_a_lease_that_cannot_be_kept_stops_the_job_in_time_and_nothing_is_told_under_it(
    place: Workplace, script: Script, trouble: Trouble
) -> None:
    place.begin(script, lease_seconds=60)
    place.desk.trouble = trouble_at("/progress", trouble)
    place.turn(59, pass_=1)
    assert script.running
    place.turn(pass_=1)
    assert script.stopped() == "lease_lost"
    place.ended()
    place.turn(5)
    assert place.results == []
    assert place.claims[-1].types == TYPES, "it asks again"


def test_a_slow_answer_does_not_lengthen_the_lease(place: Workplace, script: Script) -> None:
    """It counts from when the progress was sent: the control plane may have heard it just then."""
    place.begin(script, lease_seconds=60)
    real = place.desk.call

    def slow(method: str, path: str, **more: Any) -> Any:
        answer = real(method, path, **more)
        place.clock.at += 30
        return answer

    place.desk.call = slow  # type: ignore[method-assign]
    place.clock.at += 20
    place.turn()
    place.desk.trouble = trouble_at("/progress", gone())
    place.clock.at += 31
    place.turn()
    assert script.stopped() == "lease_lost"


def test_the_job_itself_notices_the_end_of_its_lease_while_the_worker_waits_for_an_answer(
    place: Workplace, script: Script
) -> None:
    place.begin(script, lease_seconds=60)
    assert script.started.wait(5)
    place.clock.at += 60
    assert script.stopped() == "lease_lost", "though no turn was made"


@pytest.mark.parametrize("code", ["lease_lost", "not_found"])
def test_a_lease_that_is_lost_stops_the_job_and_nothing_more_is_told(
    place: Workplace, script: Script, code: str
) -> None:
    place.begin(script)
    place.desk.trouble = trouble_at("/progress", refused(code, 409))
    place.turn(25, pass_=1)
    assert script.stopped() == "lease_lost"
    place.ended()
    place.turn(3)
    assert len(place.progress) == 1
    assert place.results == []
    assert place.claims[-1].types == TYPES
    assert place.forgotten == [], "the half-done files are kept for the next attempt"


def test_a_cancel_stops_the_job_is_told_and_its_half_done_files_are_kept_for_another_try(
    place: Workplace, script: Script
) -> None:
    place.partials = [JOB]
    place.begin(script)
    place.desk.progress = wire.ProgressReply(lease_seconds=60, cancel=True)
    place.desk.trouble = trouble_at("/result", gone())
    place.turn(22, pass_=1)
    place.ended()
    place.turn(3)
    assert [result.outcome for result in place.results] == ["cancelled"] * len(place.results)
    place.desk.trouble = lambda _: None
    place.turn(3, pass_=60)
    assert place.claims[-1].partials == [JOB]
    assert place.forgotten == []
