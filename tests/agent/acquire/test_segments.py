"""Which pieces of a file are here: arithmetic, without a file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.acquire.fetching.segments import Segment, Segments, Span


def took(segments: Segments) -> Segment:
    segment = segments.take()
    assert segment is not None
    return segment


def test_pieces_are_given_out_in_order_and_once() -> None:
    segments = Segments(250, 100)
    given_out = [took(segments) for _ in range(3)]
    assert [(segment.start, segment.end) for segment in given_out] == [(0, 100), (100, 200), (200, 250)]
    assert segments.take() is None
    assert segments.left == 0


def test_a_piece_given_back_is_the_next_and_goes_on_where_it_stopped() -> None:
    segments = Segments(300, 100)
    first = took(segments)
    took(segments)
    first.at = 40
    segments.give_back(first)
    again = took(segments)
    assert (again.start, again.at) == (0, 40)


def test_the_reach_ends_at_the_first_gap() -> None:
    segments = Segments(300, 100)
    first, second = took(segments), took(segments)
    second.at = 200
    assert segments.reach == 0
    first.at = 60
    assert segments.reach == 60
    first.at = 100
    assert segments.reach == 200


def test_what_is_here_is_told_in_few_spans() -> None:
    segments = Segments(500, 100)
    pieces = [took(segments) for _ in range(4)]
    pieces[0].at, pieces[1].at, pieces[3].at = 100, 130, 350
    assert segments.spans == [(0, 130), (300, 350)]
    assert segments.landed == 180


def test_nothing_of_an_empty_file_is_to_come() -> None:
    segments = Segments(0, 100)
    assert segments.take() is None
    assert segments.reach == 0
    assert segments.spans == []


@pytest.mark.parametrize(
    ("here", "to_come"),
    [
        ([], [(0, 100), (100, 200), (200, 250)]),
        ([(0, 250)], []),
        ([(0, 130)], [(130, 200), (200, 250)]),
        ([(100, 200)], [(0, 100), (200, 250)]),
        ([(0, 10), (200, 240)], [(10, 100), (100, 200), (240, 250)]),
        ([(50, 200)], [(0, 50), (200, 250)]),  # a connection had taken the half of another's piece
        ([(0, 30), (50, 70)], [(30, 50), (70, 100), (100, 200), (200, 250)]),
    ],
    ids=lambda value: str(value),
)
def test_what_an_earlier_run_left_is_not_asked_for_again(here: list[Span], to_come: list[Span]) -> None:
    segments = Segments(250, 100, here)
    assert segments.left == len(to_come)
    assert [(segment.at, segment.end) for segment in iter(segments.take, None)] == to_come


def test_a_half_of_what_a_running_piece_lacks_becomes_a_piece_of_its_own() -> None:
    segments = Segments(300, 100)
    pieces = [took(segments) for _ in range(3)]
    pieces[0].at, pieces[1].at, pieces[2].at = 100, 120, 290
    assert segments.share(10, now=1.0)
    assert segments.left == 1
    half = took(segments)
    assert [(piece.start, piece.end) for piece in (pieces[1], half)] == [(100, 160), (160, 200)]
    pieces[1].at, half.at, pieces[2].at = 160, 200, 300
    assert segments.reach == 300
    assert segments.spans == [(0, 300)]


def test_the_piece_that_lasts_longest_is_shared() -> None:
    segments = Segments(200, 100)
    quick, slow = took(segments), took(segments)
    quick.at, slow.at = 10, 110
    quick.taken_at, slow.taken_at = 2.0, 1.0
    assert segments.share(10, now=3.0)
    assert (quick.end, slow.end) == (100, 155)


@pytest.mark.parametrize(
    ("at", "now", "least"),
    [
        (0, 0.2, 10),  # nobody knows yet how fast it is
        (50, 0.4, 10),  # the rest would take as long, which is soon
        (81, 10.0, 10),  # a half would be too small
        (100, 10.0, 10),  # it is here
    ],
    ids=["just-begun", "fast", "little-left", "here"],
)
def test_a_piece_that_is_soon_here_is_left_to_its_connection(at: int, now: float, least: int) -> None:
    segments = Segments(100, 100)
    piece = segments.take(now=0.0)
    assert piece is not None
    piece.at = at
    assert not segments.share(least, now)
    assert (piece.end, segments.take()) == (100, None)


def test_bytes_that_are_being_read_are_not_shared() -> None:
    segments = Segments(100, 100)
    piece = took(segments)
    piece.until = 40
    assert segments.share(10, now=1.0)
    assert piece.end == 70


def test_a_piece_that_was_shared_and_given_back_ends_where_the_other_half_begins() -> None:
    segments = Segments(100, 100)
    piece = took(segments)
    piece.at = 20
    assert segments.share(10, now=1.0)
    half = took(segments)
    segments.give_back(piece)
    again = took(segments)
    assert (again.at, again.end, half.start) == (20, 60, 60)
    assert segments.take() is None


@given(
    st.integers(1, 400),
    st.integers(1, 90),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 100), st.booleans()), max_size=40),
)
def test_spans_say_what_the_pieces_say_whatever_came_in_which_order(
    size: int, each: int, steps: list[tuple[int, int, bool]]
) -> None:
    segments, taken = Segments(size, each), []
    for which, more, share in steps:
        if share:
            segments.share(2, now=1.0)
        if (segment := segments.take()) is not None:
            taken.append(segment)
        chosen = taken[which % len(taken)]
        chosen.at = min(chosen.end, chosen.at + more)
    here = {byte for segment in taken for byte in range(segment.start, segment.at)}
    assert {byte for first, end in segments.spans for byte in range(first, end)} == here
    assert segments.landed == len(here)
    assert segments.reach == next(byte for byte in range(size + 1) if byte not in here)
    again = Segments(size, each, segments.spans)
    assert {byte for first, end in again.spans for byte in range(first, end)} == here
    to_come = {byte for piece in iter(again.take, None) for byte in range(piece.at, piece.end)}
    assert to_come == set(range(size)) - here
