"""What else ends a job: a root that is no longer what was approved, a disk that hangs, the agent's own end."""

from datetime import timedelta
from uuid import UUID

import pytest

from agent import wire
from agent.acquire.terms import Failed
from agent.worker import RELEASE_WITHIN, TELL_WITHIN, TYPES
from tests.agent.scripts import Script, Stuck
from tests.agent.simulated import gone
from tests.agent.working import JOB, PATH, Desk, Workplace, job, root
from tests.parts.ports import until

OTHER = UUID("22222222-2222-4222-8222-222222222222")


def test_while_a_job_runs_roots_are_told_and_no_other_job_is_asked_for(place: Workplace, script: Script) -> None:
    place.begin(script)
    place.desk.claims.append(wire.ClaimReply(job=job(id=OTHER)))
    place.worker.work()
    place.turn(2)
    assert [claim.types for claim in place.claims] == [TYPES, []]
    place.turn(3)
    assert place.results == []


def test_a_root_that_is_no_longer_what_was_approved_ends_the_job(place: Workplace, script: Script) -> None:
    place.begin(script)
    place.fault = "marker_missing"
    place.turn(15, pass_=1)
    until(lambda: script.ended_by, "the job ends")
    place.ended()
    place.turn()
    failure = place.results[0].failure
    assert failure is not None
    assert failure.code == "root_unverified"
    assert "marker_missing" in failure.detail


def test_while_a_job_runs_its_root_is_not_probed_with_writes(place: Workplace, script: Script) -> None:
    place.begin(script)
    place.probes.clear()
    place.turn(25, pass_=1)
    assert place.probes
    assert not any(place.probes)


def test_a_root_that_does_not_answer_ends_the_job_only_after_a_while(place: Workplace, script: Script) -> None:
    place.begin(script)
    place.fault = "overdue"
    place.turn(100, pass_=1)
    assert script.running
    place.turn(60, pass_=1)
    until(lambda: script.ended_by, "the job ends")
    place.ended()
    place.turn()
    failure = place.results[0].failure
    assert failure is not None
    assert failure.code == "storage_error"


def test_a_job_on_a_root_that_was_not_told_of_is_never_begun(place: Workplace) -> None:
    begun: list[int] = []
    other = wire.AcquireOrder(root_id=OTHER, path=PATH, repo_id="o/m", revision="main")
    place.begin(lambda **_: begun.append(1), order=other)
    place.ended()
    place.turn()
    assert begun == []
    failure = place.results[0].failure
    assert failure is not None
    assert failure.code == "root_unverified"


def test_a_job_on_a_root_whose_approval_is_asked_for_is_never_begun(place: Workplace) -> None:
    begun: list[int] = []
    place.ready()
    place.work = lambda **_: begun.append(1)
    place.desk.claims.append(wire.ClaimReply(job=job(), roots=[root(approve=True)]))
    place.worker.work()
    place.turn()
    place.ended()
    place.turn()
    assert begun == []
    assert place.results[0].failure is not None


def test_the_guard_of_a_job_looks_each_time_it_is_asked(place: Workplace) -> None:
    place.ready()
    still = place.lookout.guard(root().root_id, PATH)
    place.probes.clear()
    still()
    still()
    assert place.probes == [False, False]
    place.fault = "fuse"
    with pytest.raises(Failed, match="root_unverified"):
        still()


def test_a_job_that_does_not_stop_is_told_of_without_it_and_nothing_begins_until_it_is_gone(
    place: Workplace, stuck: Stuck
) -> None:
    place.begin(stuck)
    assert stuck.started.wait(5)
    place.desk.progress = wire.ProgressReply(lease_seconds=60, cancel=True)
    place.turn(60, pass_=1)
    assert [result.outcome for result in place.results] == ["cancelled"]
    place.worker.work()
    place.turn(3, pass_=1)
    assert {tuple(claim.types) for claim in place.claims[1:]} == {()}
    stuck.let_go.set()
    place.ended()
    place.turn(3, pass_=1)
    assert place.claims[-1].types == TYPES
    assert len(place.results) == 1


def test_a_job_whose_thread_sits_in_a_system_call_keeps_its_lease(place: Workplace, stuck: Stuck) -> None:
    place.begin(stuck, lease_seconds=30)
    place.turn(120, pass_=1)
    assert len(place.progress) >= 6
    stuck.let_go.set()
    place.ended()
    place.turn()
    assert [result.outcome for result in place.results] == ["succeeded"]


def test_a_stop_of_the_agent_releases_the_job_and_says_so_shortly(place: Workplace, script: Script) -> None:
    place.begin(script)
    place.worker.release()
    assert script.stopped() == "released"
    assert [result.outcome for result in place.results] == ["released"]
    assert place.desk.last == [TELL_WITHIN]
    assert place.forgotten == []


def test_a_stop_waits_for_no_job_that_does_not_hear(
    place: Workplace, stuck: Stuck, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert timedelta(seconds=4) >= RELEASE_WITHIN + TELL_WITHIN
    monkeypatch.setattr("agent.worker.RELEASE_WITHIN", timedelta(milliseconds=50))
    place.begin(stuck)
    assert stuck.started.wait(5)
    place.worker.release()
    assert [result.outcome for result in place.results] == ["released"]


def test_a_stop_that_nobody_hears_is_none_the_longer(place: Workplace, script: Script) -> None:
    place.begin(script)
    place.desk.trouble = lambda _: gone()
    place.worker.release()
    assert len(place.results) == 1


def test_a_stop_while_a_request_hangs_is_told_over_another_connection_and_once(
    place: Workplace, script: Script
) -> None:
    place.begin(script)
    other = Desk()
    assert place.worker.release(other)
    assert [result.outcome for result in other.said("/result")] == ["released"]
    assert not place.worker.release()
    assert place.results == []


def test_what_a_claim_brings_after_the_stop_is_not_begun(place: Workplace) -> None:
    """The claim hung, and the job is let go with the agent's end."""
    begun: list[int] = []
    place.ready()
    place.work = lambda **_: begun.append(1)

    def stopped_meanwhile(path: str) -> None:
        place.worker.release(Desk())

    place.desk.trouble = stopped_meanwhile
    place.desk.claims.append(wire.ClaimReply(job=job()))
    place.worker.work()
    place.turn()
    place.ended()
    assert len(place.claims) == 1
    assert begun == []
    place.worker.work()
    place.turn(3)
    assert len(place.claims) == 1, "nor is anything claimed"


def test_a_running_jobs_files_are_never_forgotten(place: Workplace, script: Script) -> None:
    place.partials = [JOB, OTHER]
    place.begin(script)
    place.desk.claims.append(wire.ClaimReply(forget=[JOB, OTHER]))
    place.worker.work()
    place.turn(15, pass_=1)
    assert place.forgotten == [OTHER]


def test_health_says_which_job_runs_and_how_far_it_is(place: Workplace, script: Script) -> None:
    place.begin(script)
    assert script.started.wait(5)
    script.tally.phase, script.tally.bytes_total, script.tally.bytes_done = "fetch", 1000, 333
    place.turn()
    report = place.health.report
    assert (report.job_id, report.job_phase, report.job_percent) == (str(JOB), "fetch", 33)
    script.finish.set()
    place.ended()
    place.turn()
    assert place.health.report.job_id == ""


def cancelled(place: Workplace, script: Script) -> None:
    """A job with half-done files, cancelled in the middle."""
    place.partials = [JOB]
    place.begin(script)
    place.desk.progress = wire.ProgressReply(lease_seconds=60, cancel=True)
    place.turn(22, pass_=1)
    place.ended()


def test_what_was_cancelled_is_kept_for_another_try(place: Workplace, script: Script) -> None:
    cancelled(place, script)
    place.turn(4)
    assert place.forgotten == []
    assert place.claims[-1].types == TYPES
    assert place.claims[-1].partials == [JOB]


def test_what_was_cancelled_is_deleted_on_word(place: Workplace, script: Script) -> None:
    cancelled(place, script)
    place.desk.claims.append(wire.ClaimReply(forget=[JOB]))
    place.worker.work()
    place.turn(3)
    assert place.forgotten == [JOB]


def test_half_done_files_are_weighed_but_for_those_of_the_running_job(place: Workplace, script: Script) -> None:
    place.partials = [JOB, OTHER]
    place.begin(script)
    place.turn(12, pass_=1)
    assert place.weighed[-1] == [OTHER]
    place.worker.work()
    place.turn(2)
    assert place.claims[-1].proofs[0].partial_bytes.value == 1000
    assert place.claims[-1].weights == {OTHER: 1000}
    script.finish.set()
    place.ended()
    place.turn(4, pass_=1)
    place.worker.work()
    place.turn(2)
    assert place.claims[-1].proofs[0].partial_bytes.value == 2000
