"""Two hundred agents on told time: they never come in step."""

from heapq import heappop, heappush

from agent.trouble import Trouble
from tests.agent.simulated import Answering, Parts, Quiet, gone


def test_two_hundred_agents_come_back_from_an_outage_spread_out(parts: Parts) -> None:
    """Field case 32: the control plane is away for four minutes; seen from the moment it is back."""
    arrivals = _crowd(parts, outage=(30.0, 270.0), until=330.0)
    assert _peak_over_mean([at for at in arrivals if at >= 270], 270, 330) < 3


def test_two_hundred_agents_powered_on_together_do_not_beat_together(parts: Parts) -> None:
    """Field case 32: from the second beat on, a rack is spread over the interval."""
    arrivals = _crowd(parts, outage=None, until=120.0)
    assert _peak_over_mean([at for at in arrivals if 15 <= at < 120], 15, 120) < 3


def _crowd(parts: Parts, *, outage: tuple[float, float] | None, until: float) -> list[float]:
    """When each beat of 200 agents reached a control plane, from a common start at 0."""
    begin = parts.clock.at
    arrivals: list[float] = []
    agents = []
    for number in range(200):
        client = Answering()

        def trouble(_: str) -> Trouble | None:
            at = parts.clock.at - begin
            if outage and outage[0] <= at < outage[1]:
                return gone()
            arrivals.append(at)
            return None

        client.trouble = trouble
        agents.append(parts.another_pulse(client, seed=number, health=Quiet(parts.run_dir, parts.clock)))
    queue: list[tuple[float, int]] = []
    for number, agent in enumerate(agents):
        heappush(queue, (agent.first_wait().total_seconds(), number))
    while queue:
        at, number = heappop(queue)
        if at >= until:
            break
        parts.clock.at = begin + at
        heappush(queue, (at + agents[number].turn().total_seconds(), number))
    return arrivals


def _peak_over_mean(arrivals: list[float], start: float, end: float) -> float:
    seconds = [0] * int(end - start)
    for at in arrivals:
        seconds[int(at - start)] += 1
    return max(seconds) / (sum(seconds) / len(seconds))
