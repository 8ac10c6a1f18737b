"""What agents say about jobs over the wire: the real messages to the real views, with a credential that was issued."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest
from django.test import Client, RequestFactory

from agent import protocol, wire
from artifacts.models import Artifact, StorageRoot
from modelforge import lane
from nodes import control
from nodes.callers import Caller
from nodes.models import Heartbeat, Node, Volume
from tests.artifacts.ordering import COMMIT, GIB, TYPES, a_root, ordered, proof, published
from tests.conftest import Enrolled
from tests.nodes.publishing import as_json

pytestmark = pytest.mark.django_db
BOOT = UUID(int=7)
NOWHERE = UUID(int=9)


@pytest.fixture
def enrolled(enrolled_node: Callable[..., Enrolled]) -> Enrolled:
    """A node that enrolled, beat once and told its facts."""
    now = datetime.now(UTC)
    found = enrolled_node(at=now)
    Heartbeat.objects.filter(node=found.node).update(boot_id=BOOT)
    Node.objects.filter(pk=found.id).update(facts={"agent": {"job_types": TYPES}}, facts_at=now)
    Volume.objects.create(
        node=found.node, name="artifacts", path="/data/artifacts", filesystem="ext4", facts={}, seen_at=now
    )
    return found


@pytest.fixture
def root(enrolled: Enrolled) -> StorageRoot:
    """Its storage root, not proven yet."""
    return a_root(enrolled.node, proven=False, now=datetime.now(UTC))


def send(enrolled: Enrolled, path: str, message: msgspec.Struct) -> Any:
    """The response."""
    return Client(headers=enrolled.headers).post(path, as_json(message), content_type="application/json")


def told(response: Any, kind: type[Any]) -> Any:
    """The answer as an agent reads it."""
    assert response.status_code == 200, response.content
    assert response["Cache-Control"] == "no-store"
    return msgspec.json.decode(response.content, type=kind)


def claim(**said: Any) -> wire.Claim:
    """A claim of the present process."""
    words: dict[str, Any] = {"boot_id": BOOT, "types": TYPES}
    return wire.Claim(**words | said)


def test_a_snapshot_arrives(enrolled: Enrolled, root: StorageRoot) -> None:
    """From the first look at the root to the artifact, as an agent would say it."""
    asked = told(send(enrolled, protocol.CLAIM, claim()), wire.ClaimReply)
    assert (asked.job, asked.roots[0].approve) == (None, True)
    told(send(enrolled, protocol.CLAIM, claim(types=[], proofs=[proof(root, approved=True)])), wire.ClaimReply)
    root.refresh_from_db()
    ordered(root, now=datetime.now(UTC))

    job = told(send(enrolled, protocol.CLAIM, claim()), wire.ClaimReply).job
    far = wire.Progress(lease_id=job.lease_id, phase="fetch", commit=COMMIT, bytes_total=GIB, bytes_done=GIB)
    assert told(send(enrolled, protocol.progress(job.id), far), wire.ProgressReply).lease_seconds == job.lease_seconds
    done = wire.Result(lease_id=job.lease_id, outcome="succeeded", commit=COMMIT, published=published(job))
    for _ in range(2):
        assert told(send(enrolled, protocol.result(job.id), done), wire.ResultReply).state == "succeeded"
    assert Artifact.objects.get().repo_id == "org/model"


PROGRESS = wire.Progress(lease_id=NOWHERE, phase="plan")
RESULT = wire.Result(lease_id=NOWHERE, outcome="released")
EACH = pytest.mark.parametrize(
    ("path", "message"),
    [(protocol.CLAIM, claim()), (protocol.progress(NOWHERE), PROGRESS), (protocol.result(NOWHERE), RESULT)],
    ids=["claim", "progress", "result"],
)


def code(response: Any) -> tuple[int, str]:
    """Status and code of a refusal."""
    return response.status_code, response.json()["code"]


@EACH
def test_a_stranger_is_heard_by_nobody(stranger: Client, path: str, message: msgspec.Struct) -> None:
    assert stranger.post(path, as_json(message), content_type="application/json").status_code == 401


@EACH
def test_a_disabled_node_does_no_work(enrolled: Enrolled, operator: Caller, path: str, message: msgspec.Struct) -> None:
    control.disable(enrolled.node, reason="maintenance", by=operator, now=datetime.now(UTC))
    assert code(send(enrolled, path, message)) == (403, "node_disabled")


@EACH
def test_a_retired_node_is_told_that_it_is_gone(
    enrolled: Enrolled, operator: Caller, path: str, message: msgspec.Struct
) -> None:
    control.retire(enrolled.node, reason="sold", by=operator, now=datetime.now(UTC))
    assert code(send(enrolled, path, message)) == (410, "node_retired")


@EACH
def test_only_post_is_answered(enrolled: Enrolled, path: str, message: msgspec.Struct) -> None:
    response = Client(headers=enrolled.headers).get(path)
    assert (code(response), response["Allow"]) == ((405, "method_not_allowed"), "POST")


@EACH
def test_a_message_out_of_shape_is_refused_by_its_field(enrolled: Enrolled, path: str, message: msgspec.Struct) -> None:
    said = msgspec.to_builtins(message) | ({"types": 7} if isinstance(message, wire.Claim) else {"lease_id": "x"})
    response = Client(headers=enrolled.headers).post(path, said, content_type="application/json")
    assert code(response) == (400, "invalid")
    assert response.json()["errors"][0]["field"] in {"types", "lease_id"}


@pytest.mark.parametrize(
    ("path", "most"),
    [
        (protocol.CLAIM, protocol.MAX_CLAIM_BYTES),
        (protocol.progress(NOWHERE), protocol.MAX_PROGRESS_BYTES),
        (protocol.result(NOWHERE), protocol.MAX_RESULT_BYTES),
    ],
    ids=["claim", "progress", "result"],
)
def test_a_body_is_bounded(enrolled: Enrolled, path: str, most: int) -> None:
    response = Client(headers=enrolled.headers).post(path, b" " * (most + 1), content_type="application/json")
    assert code(response) == (413, "body_too_large")


def test_the_longest_messages_that_are_allowed_fit(enrolled: Enrolled, root: StorageRoot) -> None:
    """Else an agent with all its roots, or with many bad files, would never be heard."""
    path = "/" + "x" * 1000
    looked = proof(root, fault="missing", detail="d" * 1000, mount_point=path, filesystem="f" * 255)
    many = claim(proofs=[looked] * wire.MAX_ROOTS, partials=[uuid4() for _ in range(wire.MAX_PARTIALS)])
    assert len(as_json(many)) < protocol.MAX_CLAIM_BYTES
    file = wire.Quarantined(
        path=path, size_bytes=1, expected="a" * 64, found="b" * 64, reason="damaged", location="/q" + path
    )
    failure = wire.Failure(code="verification_failed", detail="d" * 1000)
    bad = wire.Result(lease_id=NOWHERE, outcome="failed", failure=failure, quarantined=[file] * wire.MAX_QUARANTINED)
    assert len(as_json(bad)) < protocol.MAX_RESULT_BYTES
    assert len(as_json(wire.Progress(lease_id=NOWHERE, phase="fetch", commit=COMMIT))) < protocol.MAX_PROGRESS_BYTES


@pytest.mark.parametrize("path", [protocol.progress(NOWHERE), protocol.result(NOWHERE)], ids=["progress", "result"])
def test_a_lease_that_does_not_count_is_a_conflict(enrolled: Enrolled, path: str) -> None:
    message = PROGRESS if path.endswith("progress") else RESULT
    assert code(send(enrolled, path, message)) == (409, "lease_lost")


def test_a_process_that_was_not_heard_is_a_conflict(enrolled: Enrolled) -> None:
    assert code(send(enrolled, protocol.CLAIM, claim(boot_id=uuid4()))) == (409, "identity_conflict")


@pytest.mark.parametrize("tail", ["", "x/progress", f"{NOWHERE}", f"{NOWHERE}/other", f"{NOWHERE}/result/"])
def test_an_address_beside_theirs_is_not_found(enrolled: Enrolled, tail: str) -> None:
    assert code(send(enrolled, f"{protocol.JOBS}/{tail}", RESULT)) == (404, "not_found")


@pytest.mark.parametrize(
    "path", [protocol.CLAIM, protocol.progress(NOWHERE), protocol.result(NOWHERE)], ids=["claim", "progress", "result"]
)
def test_their_way_is_the_short_one(path: str) -> None:
    """No session, no login, no page's protection."""
    answer = lane.answer(RequestFactory().post(path))
    assert answer is not None
    assert answer.status_code == 401


def test_no_page_goes_the_short_way() -> None:
    assert lane.answer(RequestFactory().get("/api/v1/admin/jobs")) is None
    assert lane.answer(RequestFactory().get(f"{protocol.JOBS}/nothing")) is None


@pytest.fixture
def job(enrolled: Enrolled, root: StorageRoot) -> wire.Job:
    """A job that the node holds."""
    told(send(enrolled, protocol.CLAIM, claim(types=[], proofs=[proof(root, approved=True)])), wire.ClaimReply)
    root.refresh_from_db()
    ordered(root, now=datetime.now(UTC))
    given = told(send(enrolled, protocol.CLAIM, claim()), wire.ClaimReply).job
    assert isinstance(given, wire.Job)
    return given


def test_words_that_flood_are_answered_all_the_same(enrolled: Enrolled, job: wire.Job) -> None:
    """Field case 74."""
    far = wire.Progress(lease_id=job.lease_id, phase="fetch", bytes_total=GIB, bytes_done=1)
    replies = [told(send(enrolled, protocol.progress(job.id), far), wire.ProgressReply) for _ in range(20)]
    assert all(reply.lease_seconds > job.lease_seconds - 60 for reply in replies)


def test_a_word_that_is_heard_is_no_news_and_one_that_is_refused_is(
    enrolled: Enrolled, job: wire.Job, caplog: pytest.LogCaptureFixture
) -> None:
    """Field case 74."""
    caplog.set_level("INFO", "modelforge.request")
    caplog.clear()
    send(enrolled, protocol.progress(job.id), wire.Progress(lease_id=job.lease_id, phase="plan"))
    assert caplog.records == []
    send(enrolled, protocol.progress(job.id), PROGRESS)
    assert len(caplog.records) == 1
