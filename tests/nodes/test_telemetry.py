"""What is measured over time: kept once an interval, thinned, dropped, and drawn with its gaps."""

from datetime import datetime, timedelta
from itertools import pairwise

import msgspec
import pytest
from pytest_django import Settings

from nodes import series, telemetry
from nodes.models import Node, TelemetrySample
from tests.nodes.hearing import START, a_node
from tests.nodes.publishing import sample, unknown

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)


@pytest.fixture
def node(settings: Settings) -> Node:
    """A node that is asked for a sample a minute."""
    settings.TELEMETRY_INTERVAL = MINUTE
    return a_node()


def fill(node: Node, since: datetime, until: datetime, every: timedelta = MINUTE) -> None:
    """Raw samples at a steady pace."""
    data = msgspec.to_builtins(sample(since))
    count = int((until - since) / every)
    rows = (TelemetrySample(node=node, at=since + n * every, data=data) for n in range(count))
    TelemetrySample.objects.bulk_create(rows, batch_size=2000)


def test_a_sample_is_kept_as_it_was_dated_by_the_control_plane_s_clock(node: Node) -> None:
    assert telemetry.keep(node.pk, sample(START - DAY, busy=12.5), now=START)

    kept = telemetry.latest(node)
    assert kept is not None
    assert (kept.at, kept.thinned) == (START, False)
    assert kept.data["accelerators"][0]["utilization_percent"] == {"value": 12.5}
    assert kept.data["accelerators"][0]["fan_percent"] == {"reason": "unsupported"}


@pytest.mark.parametrize(("after", "kept"), [(29, False), (30, True), (60, True)])
def test_a_second_sample_within_half_an_interval_is_dropped(node: Node, after: int, kept: bool) -> None:
    telemetry.keep(node.pk, sample(START), now=START)
    later = START + timedelta(seconds=after)

    assert telemetry.keep(node.pk, sample(later), now=later) is kept
    assert TelemetrySample.objects.count() == 1 + kept


def test_another_node_s_sample_does_not_crowd_out_this_one_s(node: Node) -> None:
    telemetry.keep(a_node("server02").pk, sample(START), now=START)
    assert telemetry.keep(node.pk, sample(START), now=START)


def test_keeping_a_sample_is_one_statement(node: Node, django_assert_num_queries: object) -> None:
    with django_assert_num_queries(1):  # type: ignore[operator]
        telemetry.keep(node.pk, sample(START), now=START)


def test_an_agent_that_sends_a_sample_with_every_beat_fills_no_table(node: Node) -> None:
    """Field case 42: 400 beats at 15 seconds, 100 minutes."""
    for beat in range(400):
        at = START + beat * timedelta(seconds=15)
        telemetry.keep(node.pk, sample(at), now=at)
    assert TelemetrySample.objects.count() <= 201


def test_samples_of_the_last_day_stay_raw(node: Node) -> None:
    fill(node, START - timedelta(hours=23), START)
    assert telemetry.thin(now=START) == 0
    assert TelemetrySample.objects.filter(thinned=False).count() == 23 * 60


def test_older_samples_are_thinned_to_one_of_each_ten_minutes(node: Node) -> None:
    other = a_node("server02")
    for each in (node, other):
        fill(each, START - DAY - timedelta(hours=2), START - DAY)
    gone = telemetry.thin(now=START, batch=50)

    left = TelemetrySample.objects.filter(node=node)
    assert gone == 2 * (120 - 12)
    assert left.count() == 12
    assert set(left.values_list("thinned", flat=True)) == {True}
    assert {at.minute % 10 for at in left.values_list("at", flat=True)} == {0}


def test_thinning_twice_changes_nothing_more(node: Node) -> None:
    fill(node, START - DAY - timedelta(hours=2), START - DAY)
    telemetry.thin(now=START)
    assert telemetry.thin(now=START) == 0
    assert TelemetrySample.objects.count() == 12


def test_samples_older_than_thirty_days_are_gone(node: Node) -> None:
    fill(node, START - timedelta(days=31), START - timedelta(days=29), timedelta(minutes=10))
    telemetry.thin(now=START, batch=40)
    ages = [START - at for at in TelemetrySample.objects.values_list("at", flat=True)]
    assert len(ages) == 144
    assert max(ages) <= timedelta(days=30)


def test_one_call_does_a_bounded_amount_of_work(node: Node) -> None:
    fill(node, START - 3 * DAY, START - 2 * DAY)
    telemetry.thin(now=START, batch=100, batches=2)
    assert TelemetrySample.objects.filter(thinned=False).count() == 24 * 60 - 200


def test_a_month_of_samples_is_bounded(node: Node) -> None:
    """Field case 42: however long a node lives, it holds a day of raw samples and 29 of thinned ones."""
    for day in range(4):
        fill(node, START + day * DAY, START + (day + 1) * DAY)
        telemetry.thin(now=START + (day + 1) * DAY)
    assert TelemetrySample.objects.count() == 24 * 60 + 3 * 144


def test_a_series_has_a_line_for_each_metric_of_each_part(node: Node) -> None:
    telemetry.keep(node.pk, sample(START, busy=40.0), now=START)
    drawn = series.draw(node, since=START - MINUTE, until=START + MINUTE)

    assert drawn.host["cpu_percent"] == [(START.timestamp(), 40.0)]
    assert drawn.accelerators["GPU-0000"]["utilization_percent"] == [(START.timestamp(), 40.0)]
    assert drawn.volumes["artifacts"]["free_bytes"] == [(START.timestamp(), 2**40)]


def test_a_value_that_could_not_be_read_is_drawn_as_none_and_never_as_0(node: Node) -> None:
    """Field case 44."""
    telemetry.keep(node.pk, sample(START, power_watts=unknown("error", 999)), now=START)
    drawn = series.draw(node, since=START - MINUTE, until=START + MINUTE)
    assert drawn.accelerators["GPU-0000"]["power_watts"] == [(START.timestamp(), None)]


def test_a_long_span_is_drawn_with_few_points_that_are_means(node: Node) -> None:
    for minute in range(60):
        at = START + minute * MINUTE
        telemetry.keep(node.pk, sample(at, busy=float(minute % 2) * 100), now=at)
    drawn = series.draw(node, since=START, until=START + timedelta(hours=1), points=10)

    assert [value for _, value in drawn.host["cpu_percent"]] == [50.0] * 10


def test_a_silence_is_drawn_as_a_gap(node: Node) -> None:
    fill(node, START, START + 5 * MINUTE)
    fill(node, START + 30 * MINUTE, START + 35 * MINUTE)
    drawn = series.draw(node, since=START, until=START + timedelta(hours=1))

    line = drawn.host["cpu_percent"]
    assert [value is None for _, value in line] == [False] * 5 + [True] + [False] * 5
    assert START.timestamp() + 240 < line[5][0] < START.timestamp() + 1800


def test_samples_at_their_usual_pace_have_no_gap_however_fine_the_drawing(node: Node) -> None:
    fill(node, START, START + 20 * MINUTE)
    drawn = series.draw(node, since=START, until=START + 20 * MINUTE, points=1000)
    assert None not in [value for _, value in drawn.host["cpu_percent"]]


def test_thinned_samples_have_no_gaps_between_them(node: Node) -> None:
    fill(node, START - DAY - timedelta(hours=2), START - DAY)
    telemetry.thin(now=START)
    drawn = series.draw(node, since=START - DAY - timedelta(hours=2), until=START - DAY, points=1000)
    assert len(drawn.host["cpu_percent"]) == 12
    assert None not in [value for _, value in drawn.host["cpu_percent"]]


def test_every_line_has_the_same_instants_also_for_a_gpu_that_came_later(node: Node) -> None:
    telemetry.keep(node.pk, sample(START), now=START)
    later = START + MINUTE
    telemetry.keep(node.pk, sample(later, keys=("GPU-0001",)), now=later)
    drawn = series.draw(node, since=START, until=START + 5 * MINUTE)

    instants = [START.timestamp(), later.timestamp()]
    assert drawn.accelerators["GPU-0000"]["power_watts"] == [(instants[0], 200.0), (instants[1], None)]
    assert drawn.accelerators["GPU-0001"]["power_watts"] == [(instants[0], None), (instants[1], 200.0)]


@pytest.mark.django_db(transaction=True)
def test_the_beats_own_connection_keeps_samples_too(node: Node) -> None:
    assert telemetry.keep(node.pk, sample(START), now=START)
    assert not telemetry.keep(node.pk, sample(START), now=START + timedelta(seconds=1))
    assert TelemetrySample.objects.get().data["host"]["load_1m"] == {"value": 1.5}


def test_of_a_step_with_many_samples_six_are_read_spread_over_it() -> None:
    seen = [(number, START, False) for number in range(1440)]
    assert series.spread(seen[:6], 6) == seen[:6]
    read = [one[0] for one in series.spread(seen, 6)]
    assert (len(read), read[0], read[-1]) == (6, 0, 1439)
    assert max(b - a for a, b in pairwise(read)) - min(b - a for a, b in pairwise(read)) <= 1


def test_only_what_is_drawn_is_decoded(node: Node) -> None:
    fill(node, START, START + 5 * MINUTE)
    wanted = series.Metrics(host=("cpu_percent",), accelerator=("power_watts",), volume=())
    drawn = series.draw(node, since=START, until=START + 5 * MINUTE, metrics=wanted)
    assert list(drawn.host) == ["cpu_percent"]
    assert {key: list(lines) for key, lines in drawn.accelerators.items()} == {"GPU-0000": ["power_watts"]}
    assert drawn.volumes == {}
