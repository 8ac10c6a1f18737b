"""How ages, sizes, readings and events are worded."""

from datetime import UTC, datetime, timedelta

import pytest

from nodes import wording

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("length", "said"),
    [
        (timedelta(seconds=12), "12 s"),
        (timedelta(seconds=61), "1 min"),
        (timedelta(hours=3, minutes=20), "3 h 20 min"),
        (timedelta(hours=3), "3 h"),
        (timedelta(hours=30), "1 d"),
        (timedelta(days=90), "3 months"),
        (timedelta(days=800), "2 years"),
    ],
)
def test_a_length_is_told_in_its_largest_units(length: timedelta, said: str) -> None:
    assert wording.span(length) == wording.span(-length) == said


@pytest.mark.parametrize(("seconds", "said"), [(0, "just now"), (-12, "12 s ago"), (180, "in 3 min")])
def test_an_instant_is_told_as_seen_from_now(seconds: int, said: str) -> None:
    assert wording.relative(NOW + timedelta(seconds=seconds), NOW) == said


@pytest.mark.parametrize(
    ("count", "said"),
    [(None, "—"), (0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (80 * 2**30, "80 GiB"), (141 * 2**30, "141 GiB")],
)
def test_bytes_are_told_in_binary_units(count: int | None, said: str) -> None:
    assert wording.size(count) == said


@pytest.mark.parametrize(
    ("reading", "said"),
    [
        ({"reason": "unsupported"}, "not supported here"),
        ({"reason": "denied", "code": 4}, "permission denied (code 4)"),
        ({"reason": "lost", "code": 15}, "the device was lost (code 15)"),
        (None, "not reported"),
        ({"reason": "brand-new"}, "brand-new"),
    ],
)
def test_a_missing_value_says_why(reading: object, said: str) -> None:
    assert wording.why_not(reading) == said


def test_an_events_line_leaves_out_handles_and_empty_values() -> None:
    details = {
        "handle": "abc",
        "reason": "fan",
        "outage_seconds": 2460,
        "planned": False,
        "old": "",
        "nested": {"a": 1},
    }
    assert wording.event_summary(details) == "reason: fan · outage: 41 min · planned: no"


def test_an_events_line_says_why_first_and_what_it_was_about_last() -> None:
    """A database keeps names in an order of its own."""
    details = {
        "commit": "8c1f",
        "revision": "main",
        "job_type": "artifact.acquire.v1",
        "attempt": 2,
        "failure_code": "stalled",
    }
    said = "failure code: stalled · attempt: 2 · job type: artifact.acquire.v1"
    assert wording.event_summary(details) == said
    assert wording.event_summary(dict(reversed(details.items()))) == said


def test_an_events_bytes_are_said_in_their_unit() -> None:
    assert wording.event_summary({"bytes": 300_000_403, "free_bytes": 0}) == "bytes: 286 MiB · free: 0 B"


def test_a_count_is_grouped() -> None:
    assert wording.count(16_166_076) == "16\N{NO-BREAK SPACE}166\N{NO-BREAK SPACE}076"
    assert wording.count(7) == "7"


def test_an_event_of_another_release_keeps_its_name() -> None:
    assert wording.event_label("node.teleported") == "node.teleported"
