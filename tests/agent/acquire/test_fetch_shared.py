"""When nothing else is left, connections share what the slow ones still have to bring."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from tests.agent.acquire.fetching import KIB, LIMITS, Fetch
from tests.hub.contents import weights
from tests.hub.faults import Fault, Request
from tests.hub.hub import Hub

BIG = "model.safetensors"
SEGMENT = LIMITS.segment_bytes
BIG_BYTES = 4 * SEGMENT
SHARING = replace(LIMITS, share_bytes=4 * KIB)
SLOW = Fault(bytes_per_second=24 * KIB)


def third(request: Request) -> bool:
    """Whether it asks for the third segment from its start."""
    return request.range is not None and request.range[0] == 2 * SEGMENT


def asked_within(hub: Hub, first: int, end: int) -> list[int]:
    """Where the requests for bytes of a piece begin."""
    return sorted(r.range[0] for r in hub.of("cdn") if r.range is not None and first <= r.range[0] < end)


def fetch(hub: Hub, tmp_path: Path, *, sharing: bool = True) -> Fetch:
    """One large file, the third segment of which comes slowly."""
    hub.fault("cdn", SLOW, when=third, times=1)
    return Fetch(hub, hub.repo("org/m", {BIG: weights(BIG_BYTES)}), tmp_path, limits=SHARING if sharing else LIMITS)


def test_others_bring_the_halves_of_a_slow_segment_and_no_byte_twice(hub: Hub, tmp_path: Path) -> None:
    bringing = fetch(hub, tmp_path)
    assert bringing.run() == "done"
    assert bringing.right
    assert len(asked_within(hub, 2 * SEGMENT, 3 * SEGMENT)) >= 2
    assert (bringing.tally.bytes_fetched, bringing.tally.bytes_done) == (BIG_BYTES, BIG_BYTES)


def test_no_half_is_smaller_than_it_may_be(hub: Hub, tmp_path: Path) -> None:
    assert fetch(hub, tmp_path).run() == "done"
    begun = [*asked_within(hub, 2 * SEGMENT, 3 * SEGMENT), 3 * SEGMENT]
    assert min(end - start for start, end in pairwise(begun)) >= SHARING.share_bytes


def test_a_segment_that_is_not_worth_it_is_left_to_its_connection(hub: Hub, tmp_path: Path) -> None:
    bringing = fetch(hub, tmp_path, sharing=False)
    assert bringing.run() == "done"
    assert asked_within(hub, 2 * SEGMENT, 3 * SEGMENT) == [2 * SEGMENT]


def test_after_a_stop_in_the_midst_of_shared_segments_not_a_byte_comes_twice(hub: Hub, tmp_path: Path) -> None:
    hub.fault("cdn", SLOW)  # the line is slow everywhere, and two connections have nothing to do
    bringing = Fetch(hub, hub.repo("org/m", {BIG: weights(2 * SEGMENT)}), tmp_path, limits=SHARING)
    assert bringing.run_until(SEGMENT) == "released"
    asked, before = len(hub.of("cdn")), bringing.tally.bytes_fetched
    assert asked > 2, "shared"
    hub.mend()
    assert bringing.run() == "done"
    assert bringing.right
    assert bringing.tally.bytes_fetched == 2 * SEGMENT - before
