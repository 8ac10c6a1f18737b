"""Lines of a picture: broken where nothing was measured, inside their box, with round figures beside them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from nodes.admin.pictures import HIGH, WIDE, Line, Picture, rounded_up

SINCE = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def a_picture(values: list[float | None], **fields: Any) -> Picture:
    """One line over an hour, its points evenly spread."""
    points = [(SINCE + HOUR * i / max(len(values) - 1, 1), value) for i, value in enumerate(values)]
    return Picture("Load", "%", SINCE, SINCE + HOUR, [Line("GPU 0", points)], **fields)


def test_a_line_goes_from_edge_to_edge() -> None:
    assert a_picture([0, 100], top=100).strokes[0].path == f"M0.0,{HIGH}.0 L{WIDE}.0,0.0"


def test_a_line_breaks_where_nothing_was_measured() -> None:
    assert a_picture([1, 1, None, 1, 1], top=100).strokes[0].path.count("M") == 2


def test_a_lone_point_is_a_dash_that_can_be_seen() -> None:
    assert " L" in a_picture([None, 50, None], top=100).strokes[0].path


def test_a_count_holds_until_it_changes() -> None:
    assert a_picture([2, 1], step=True).strokes[0].path == f"M0.0,0.0 L{WIDE}.0,0.0 L{WIDE}.0,{HIGH / 2:.1f}"


def test_nothing_measured_is_empty_and_zero_is_not() -> None:
    assert a_picture([None, None]).empty
    assert not a_picture([0.0, 0.0]).empty


def test_more_than_the_known_end_raises_the_axis() -> None:
    assert a_picture([40, 104], top=100).ceiling >= 104
    assert a_picture([40, 99], top=100).ceiling == 100


@pytest.mark.parametrize(("amount", "end"), [(1, 1), (1.2, 2), (63, 80), (640, 800), (0.3, 0.4), (100, 100)])
def test_axes_end_at_round_figures(amount: float, end: float) -> None:
    assert rounded_up(amount) == pytest.approx(end)


@pytest.mark.parametrize(("highest", "words"), [(1, ["2", "1", "0"]), (10, ["10", "5", "0"]), (11, ["20", "10", "0"])])
def test_counts_have_whole_figures(highest: int, words: list[str]) -> None:
    assert [word for _, word in a_picture([highest], step=True).ticks] == words


def test_the_last_value_is_told() -> None:
    assert a_picture([10, 55, None]).strokes[0].last == "55 %"
