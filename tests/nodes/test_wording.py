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


def test_an_event_of_another_release_keeps_its_name() -> None:
    assert wording.event_label("node.teleported") == "node.teleported"
