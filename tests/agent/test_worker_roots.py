"""What a worker says of its storage roots, and when."""

import threading
from datetime import timedelta
from uuid import UUID

import pytest

from agent import wire
from agent.acquire.terms import Failed
from agent.worker import TYPES
from tests.agent.simulated import gone
from tests.agent.working import JOB, PATH, ROOT, Workplace, root
from tests.parts.ports import until

OTHER = UUID("22222222-2222-4222-8222-222222222222")


def test_told_of_a_root_it_looks_and_claims_again_at_once_with_the_proof(place: Workplace) -> None:
    place.desk.claims.append(wire.ClaimReply(roots=[root(approve=True)]))
    place.worker.online(True)
    place.turn(3)
    first, second = place.claims
    assert (first.types, first.proofs) == ([], [])
    assert second.types == TYPES
    assert [(proof.root_id, proof.approved, proof.fault) for proof in second.proofs] == [(ROOT, True, None)]


def test_an_approval_is_told_once(place: Workplace) -> None:
    place.desk.claims.extend([wire.ClaimReply(roots=[root(approve=True)]), wire.ClaimReply(roots=[root()])])
    place.worker.online(True)
    place.turn(20)
    assert [[proof.approved for proof in claim.proofs] for claim in place.claims] == [[], [True]]


def test_an_approval_that_was_heard_needs_no_second_look(place: Workplace) -> None:
    place.desk.claims.extend(
        [wire.ClaimReply(roots=[root(approve=True, device_id="")]), wire.ClaimReply(roots=[root()])]
    )
    place.worker.online(True)
    place.turn(10)
    assert len(place.probes) == 1
    place.worker.work()
    place.turn()
    assert [proof.approved for proof in place.claims[-1].proofs] == [False]
    assert place.claims[-1].types == TYPES


def test_an_approval_of_another_device_than_was_told_is_looked_at(place: Workplace) -> None:
    other = root(device_id="8:99")
    place.desk.claims.extend([wire.ClaimReply(roots=[root(approve=True)]), wire.ClaimReply(roots=[other])])
    place.worker.online(True)
    place.turn(10)
    assert len(place.probes) == 2


def test_an_approval_that_is_asked_for_again_is_told_again(place: Workplace) -> None:
    place.desk.claims.extend([wire.ClaimReply(roots=[root(approve=True)]), wire.ClaimReply(roots=[root()])])
    place.worker.online(True)
    place.turn(20)
    place.desk.claims.append(wire.ClaimReply(roots=[root(approve=True)]))
    place.worker.work()
    place.turn(5)
    assert place.claims[-1].proofs[0].approved


def test_an_approval_that_was_not_heard_is_told_until_it_is(place: Workplace) -> None:
    place.desk.claims.append(wire.ClaimReply(roots=[root(approve=True)]))
    place.worker.online(True)
    place.turn()
    place.desk.trouble = lambda _: gone()
    place.turn(10, pass_=30)
    place.desk.trouble = lambda _: None
    place.turn(3, pass_=60)
    assert place.claims[-1].proofs[0].approved


def test_what_is_known_is_not_told_again_before_its_time(place: Workplace) -> None:
    place.ready()
    place.turn(28, pass_=10)
    assert len(place.claims) == 0
    assert len(place.probes) > 3, "the roots are looked at all the while"
    place.turn(6, pass_=10)
    assert len(place.claims) == 1, "after five minutes"
    assert place.claims[0].types == TYPES


def test_a_root_with_a_fault_is_told_and_no_job_is_asked_for(place: Workplace) -> None:
    place.ready(fault="marker_missing")
    place.worker.work()
    place.turn(2)
    assert place.claims[0].types == []
    assert [(proof.fault, proof.detail) for proof in place.claims[0].proofs] == [("marker_missing", "because")]


def test_an_old_fault_is_not_told_again_before_another_look(place: Workplace) -> None:
    """Somebody mended it and asks for another approval."""
    place.ready(fault="marker_foreign")
    place.fault = None
    place.worker.work()
    place.turn(2)
    assert [proof.fault for proof in place.claims[0].proofs] == [None]


def test_a_fault_that_comes_is_told_at_the_next_look_and_so_is_its_end(place: Workplace) -> None:
    place.ready()
    place.fault = "device_changed"
    place.turn(8, pass_=10)
    assert [(claim.types, claim.proofs[0].fault) for claim in place.claims] == [([], "device_changed")]
    place.fault = None
    place.turn(8, pass_=10)
    assert [(claim.types, claim.proofs[0].fault) for claim in place.claims[1:]] == [(TYPES, None)]


def test_a_root_that_was_retired_is_neither_looked_at_nor_told_of(place: Workplace) -> None:
    place.ready()
    place.desk.roots = []
    place.worker.work()
    place.turn(2)
    place.probes.clear()
    place.turn(10, pass_=30)
    assert place.probes == []
    place.worker.work()
    place.turn()
    assert (place.claims[-1].types, place.claims[-1].proofs) == ([], [])


def test_a_look_that_hangs_stops_no_turn_and_hides_no_other_news(place: Workplace) -> None:
    place.ready()
    place.hang = threading.Event()
    place.turn(8, pass_=10)
    place.worker.work()
    place.turn()
    assert len(place.claims) == 1
    place.hang.set()
    place.looked()


def test_a_claim_waits_a_moment_for_the_look_that_is_under_way(place: Workplace) -> None:
    place.ready()
    place.hang = threading.Event()
    place.turn(pass_=61)
    place.worker.work()
    assert place.turn() <= timedelta(seconds=5)
    assert place.claims == []
    place.fault = "fuse"
    place.hang.set()
    place.looked()
    place.turn()
    assert [proof.fault for proof in place.claims[0].proofs] == ["fuse"]


def test_a_look_that_crashes_ends_the_worker(place: Workplace) -> None:
    place.ready()
    place.crash = ValueError("a bug")
    with pytest.raises(ValueError, match="a bug"):
        place.turn(3, pass_=61)


def test_half_done_files_are_told_of_and_forgotten_on_word(place: Workplace) -> None:
    place.partials = [JOB, OTHER]
    place.ready()
    place.desk.claims.append(wire.ClaimReply(forget=[OTHER]))
    place.worker.work()
    place.turn(3)
    assert place.claims[0].partials == sorted([JOB, OTHER])
    assert place.forgotten == [OTHER]
    place.worker.work()
    place.turn()
    assert place.claims[-1].partials == [JOB]


def test_nothing_is_forgotten_in_a_root_that_is_not_proven(place: Workplace) -> None:
    place.ready(fault="marker_missing")
    place.desk.claims.append(wire.ClaimReply(forget=[OTHER]))
    place.worker.work()
    place.turn(3)
    assert place.forgotten == []


def test_a_root_at_another_path_is_another_root(place: Workplace) -> None:
    place.ready()
    assert place.lookout.order_of(ROOT, PATH) is not None
    assert place.lookout.order_of(ROOT, PATH + "/x") is None


def test_a_deletion_that_takes_its_time_goes_on_and_no_job_is_asked_for_meanwhile(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.tidying.WITHIN", timedelta(milliseconds=20))
    place.partials = [OTHER]
    place.slow = threading.Event()
    place.ready()
    place.desk.claims.append(wire.ClaimReply(forget=[OTHER]))
    place.worker.work()
    place.turn(5, pass_=6)
    place.worker.work()
    place.turn(2)
    assert [claim.types for claim in place.claims] == [TYPES, []]
    place.slow.set()
    until(lambda: place.forgotten, "it is gone")
    place.turn(5, pass_=6)
    assert place.claims[-1].types == TYPES
    assert place.forgotten[0] == OTHER


def test_a_disk_that_cannot_be_tidied_is_only_told_of(place: Workplace, caplog: pytest.LogCaptureFixture) -> None:
    place.untidy = Failed("storage_error", "EIO")
    place.ready()
    place.desk.claims.append(wire.ClaimReply(forget=[OTHER]))
    place.worker.work()
    place.turn(3)
    assert "cannot be tidied" in caplog.text
    place.worker.work()
    place.turn()
    assert place.claims[-1].types == TYPES


def test_what_cannot_be_deleted_keeps_the_room_from_being_told_and_holds_up_no_job(place: Workplace) -> None:
    place.aside = ["withstands"]
    place.ready()
    place.worker.work()
    place.turn()
    assert [proof.partial_bytes.value for proof in place.claims[-1].proofs] == [None]
    assert place.claims[-1].types == TYPES
    place.aside = []
    place.turn(8, pass_=10)
    place.worker.work()
    place.turn()
    assert [proof.partial_bytes.value for proof in place.claims[-1].proofs] == [0]
