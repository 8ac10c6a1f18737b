"""Enrollment and credentials under real concurrency: threads with connections and transactions of their own."""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from agent import wire
from agent.protocol import Code
from enrollment import admission, credentials
from enrollment.models import EnrollmentToken, NodeCredential
from nodes.audit import broken, events, verify
from nodes.callers import Caller
from nodes.event_types import EventType
from nodes.models import CredentialState, Node
from tests.conftest import Enrolled
from tests.enrollment.asking import admit, enroll, identify, invited, refused, states
from tests.races.racing import race

pytestmark = pytest.mark.django_db(transaction=True)

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
RACERS = 20
DAY = timedelta(days=1)


def test_of_twenty_agents_with_one_token_exactly_one_gets_in(operator: Caller) -> None:
    """Field case 6."""
    _, token = invited(operator, NOW)
    outcomes = race(*[lambda: admit(token, NOW)] * RACERS)
    winners = [outcome for outcome in outcomes if isinstance(outcome, wire.Enrolled)]
    assert len(winners) == 1
    assert Counter(outcomes)[Code.TOKEN_USED] == RACERS - 1
    assert Node.objects.get().pk == winners[0].node_id
    assert EnrollmentToken.objects.get().node_id == winners[0].node_id
    assert identify(winners[0].credential, NOW).node_id == winners[0].node_id
    assert events().filter(type=EventType.NODE_ENROLLED).count() == 1
    assert not broken(verify())


def test_one_agent_that_asks_eight_times_at_once_is_one_node_with_one_good_credential(operator: Caller) -> None:
    """Field case 3: the client gave up waiting and asked again while the first request was still under way."""
    _, token = invited(operator, NOW)
    message = enroll()
    outcomes = race(*[lambda: admit(token, NOW, message)] * 8)
    told = [outcome for outcome in outcomes if isinstance(outcome, wire.Enrolled)]
    assert len(told) == 8
    assert Node.objects.count() == 1
    assert Counter(states(message.node_id)) == {"superseded": 7, "pending": 1}
    alive = NodeCredential.objects.get(state="pending").handle
    assert [identify(one.credential, NOW).node_id for one in told if alive in one.credential] == [message.node_id]


def test_one_new_node_with_two_tokens_at_once_spends_both_in_turn_and_is_one_node(operator: Caller) -> None:
    tokens = [invited(operator, NOW)[1] for _ in range(2)]
    message = enroll()
    outcomes = race(*[lambda token=token: admit(token, NOW, message) for token in tokens])
    assert all(isinstance(outcome, wire.Enrolled) for outcome in outcomes)
    assert Node.objects.count() == 1
    assert Counter(states(message.node_id)) == {"superseded": 1, "pending": 1}


def test_a_token_revoked_while_it_is_used_is_either_used_or_revoked(operator: Caller) -> None:
    for _ in range(5):
        row, token = invited(operator, NOW)
        outcomes = race(
            lambda token=token: admit(token, NOW),  # type: ignore[misc]
            lambda row=row: admission.revoke(row, by=operator, now=NOW),  # type: ignore[misc]
        )
        row.refresh_from_db()
        if isinstance(outcomes[0], wire.Enrolled):
            assert (row.used_at, row.revoked_at, outcomes[1]) == (NOW, None, Code.STATE_CONFLICT)
        else:
            assert (row.used_at, row.revoked_at, outcomes[0]) == (None, NOW, Code.TOKEN_REVOKED)


@pytest.fixture
def used(transactional_db: None, enrolled_node: Callable[..., Enrolled]) -> Enrolled:
    """A node whose credential is in use."""
    enrolled = enrolled_node(at=NOW)
    identify(enrolled.credential, NOW)
    return enrolled


def test_two_rotations_at_once_leave_one_pending_credential(used: Enrolled, operator: Caller) -> None:
    outcomes = race(*[lambda: credentials.rotate(used.node, overlap=DAY, by=operator, now=NOW)] * 2)
    texts = [outcome[1] for outcome in outcomes if isinstance(outcome, tuple)]
    assert len(texts) == 2
    assert Counter(states(used.id)) == {"active": 1, "superseded": 1, "pending": 1}
    pending = NodeCredential.objects.get(state="pending").handle
    (good,), (dead,) = ([text for text in texts if (pending in text) is alive] for alive in (True, False))
    with refused(Code.CREDENTIAL_SUPERSEDED):
        identify(dead, NOW)
    assert identify(good, NOW).node_id == used.id


def test_renewals_and_rotations_at_once_leave_one_pending_credential(used: Enrolled, operator: Caller) -> None:
    by = identify(used.credential, NOW)
    outcomes = race(
        *[lambda: credentials.renew(by=by, now=NOW)] * 4,
        *[lambda: credentials.rotate(used.node, overlap=DAY, by=operator, now=NOW)] * 4,
    )
    issued = [outcome for outcome in outcomes if isinstance(outcome, tuple)]
    assert all(isinstance(rotated, tuple) for rotated in outcomes[4:])
    assert outcomes.count(Code.THROTTLED) == 8 - len(issued), "a renewal right after another may be told to wait"
    assert Counter(states(used.id)) == {"active": 1, "superseded": len(issued) - 1, "pending": 1}
    assert Node.objects.get().credential_state == CredentialState.ROTATING
    assert identify(used.credential, NOW).node_id == used.id


def test_a_new_credential_first_used_by_eight_requests_at_once_becomes_active_once(
    used: Enrolled, operator: Caller
) -> None:
    _, new = credentials.rotate(used.node, overlap=DAY, by=operator, now=NOW)
    outcomes = race(*[lambda: identify(new, NOW).node_id] * 8)
    assert outcomes == [used.id] * 8
    assert Counter(states(used.id)) == {"superseded": 1, "active": 1}
    assert events().filter(type=EventType.CREDENTIAL_FIRST_USED).count() == 2


def test_a_first_use_and_a_revocation_at_once_leave_nothing_that_works(used: Enrolled, operator: Caller) -> None:
    for _ in range(5):
        _, new = credentials.rotate(used.node, overlap=DAY, by=operator, now=NOW)
        outcomes = race(
            lambda new=new: identify(new, NOW).node_id,  # type: ignore[misc]
            lambda: credentials.revoke(used.node, reason="stolen", by=operator, now=NOW),
        )
        assert outcomes[0] in {used.id, Code.CREDENTIAL_REVOKED}
        assert set(states(used.id)) <= {"superseded", "revoked"}
        with refused(Code.CREDENTIAL_REVOKED):
            identify(new, NOW)


def test_a_node_enrolled_by_many_tokens_while_it_first_speaks_ends_with_one_credential(operator: Caller) -> None:
    message = enroll(uuid4())
    first = admit(invited(operator, NOW)[1], NOW, message)
    tokens = [invited(operator, NOW)[1] for _ in range(4)]
    outcomes = race(
        lambda: identify(first.credential, NOW).node_id,
        *[lambda token=token: admit(token, NOW, message) for token in tokens],
    )
    live = NodeCredential.objects.filter(state__in=["pending", "active"])
    assert live.count() == 1
    if live.get().state == "active":
        assert outcomes[0] == message.node_id
    else:
        assert outcomes[0] == Code.CREDENTIAL_SUPERSEDED
    assert not broken(verify())
