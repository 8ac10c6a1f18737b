"""When a node is online, stale or offline."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.liveness import Deadlines, Liveness, deadlines, due, granted_interval, seen_at

HEARD = datetime(2026, 3, 1, tzinfo=UTC)
LIMITS = deadlines(HEARD, timedelta(seconds=10))
ORDER = [Liveness.ONLINE, Liveness.STALE, Liveness.OFFLINE]


@pytest.mark.parametrize(
    ("stored", "after", "steps"),
    [
        ("online", 0, []),
        ("online", 29.999, []),
        ("online", 30, [("stale", 30)]),
        ("online", 59.999, [("stale", 30)]),
        ("online", 60, [("stale", 30), ("offline", 60)]),
        ("online", 9999, [("stale", 30), ("offline", 60)]),
        ("stale", 30, []),
        ("stale", 60, [("offline", 60)]),
        ("offline", 9999, []),
    ],
)
def test_each_transition_is_dated_at_its_own_deadline(
    stored: str, after: float, steps: list[tuple[str, float]]
) -> None:
    found = due(Liveness(stored), LIMITS, HEARD + timedelta(seconds=after))
    assert [(step.to, (step.at - HEARD).total_seconds()) for step in found] == steps


def test_a_node_that_was_never_heard_is_offline_and_nothing_is_due() -> None:
    assert due(Liveness.OFFLINE, None, HEARD) == ()
    assert seen_at(Liveness.OFFLINE, None, HEARD) is Liveness.OFFLINE


@pytest.mark.parametrize("seconds", [1, 15, 60, 3600])
def test_the_deadlines_grow_with_the_interval_that_the_node_was_told(seconds: int) -> None:
    """Field case 35: stale after 3, offline after 6 of the node's own intervals."""
    limits = deadlines(HEARD, timedelta(seconds=seconds))
    assert (limits.stale_at - HEARD, limits.offline_at - HEARD) == (
        timedelta(seconds=3 * seconds),
        timedelta(seconds=6 * seconds),
    )


moments = st.floats(0, 1e6).map(lambda s: HEARD + timedelta(seconds=s))


@given(stored=st.sampled_from(ORDER), now=moments, later=moments)
def test_silence_never_makes_a_node_livelier(stored: Liveness, now: datetime, later: datetime) -> None:
    first, second = sorted([now, later])
    seen = [ORDER.index(seen_at(stored, LIMITS, at)) for at in (first, second)]
    assert ORDER.index(stored) <= seen[0] <= seen[1]


@given(stored=st.sampled_from(ORDER), now=moments, later=moments)
def test_looking_twice_tells_the_same_as_looking_once(stored: Liveness, now: datetime, later: datetime) -> None:
    """Field case 34: no flicker. Sweeping at any instants on the way gives the same steps as one sweep at the end."""
    first, second = sorted([now, later])
    early = list(due(stored, LIMITS, first))
    between = early[-1].to if early else stored
    assert early + list(due(between, LIMITS, second)) == list(due(stored, LIMITS, second))


@given(fleet=st.integers(0, 10**6), most=st.integers(1, 10**4), shortest=st.integers(1, 3600))
def test_the_fleet_never_beats_more_often_than_the_control_plane_bears(fleet: int, most: int, shortest: int) -> None:
    interval = granted_interval(fleet, shortest=timedelta(seconds=shortest), most_per_second=most)
    assert interval >= timedelta(seconds=shortest)
    assert fleet / interval.total_seconds() <= most


def test_deadlines_are_values() -> None:
    assert Deadlines(HEARD + timedelta(seconds=30), HEARD + timedelta(seconds=60)) == LIMITS
