"""Joining and beating over a line that loses, refuses and redirects."""

from collections.abc import Callable

import pytest

from agent import protocol
from tests.parts.agents import Agent
from tests.parts.control_plane import ControlPlane
from tests.parts.ports import until
from tests.parts.proxy import FINE, Fault, Proxy, Rule, always
from tests.walks.journey import join, seen, told

Make = Callable[..., Agent]

pytestmark = pytest.mark.walk


def first_of(path: str, fault: Fault) -> Rule:
    """Only the first request to the path goes wrong."""
    left = [fault]
    return lambda asked: left.pop() if asked == path and left else FINE


@pytest.mark.parametrize("fault", [Fault(lose_reply=True), Fault(cut_reply=True)], ids=["lost", "cut"])
def test_an_enrollment_whose_reply_was_lost_heals_and_makes_one_node(
    plane: ControlPlane, agent: Make, proxy: Callable[[ControlPlane], Proxy], fault: Fault
) -> None:
    """Field case 3."""
    before = len(plane.nodes())
    line = proxy(plane)
    line.rule = first_of(protocol.ENROLL, fault)
    server = join(plane, agent, url=line.url, name="lost reply")
    enrollments = [status for _, path, status in line.seen if path == protocol.ENROLL]
    assert enrollments == [200, 200]
    assert len(plane.nodes()) == before + 1
    issued = plane.events("credential.issued", node=server.node_id)
    assert [event["details"].get("reason", "") for event in issued] == ["", "the reply before was lost"]
    assert len(plane.events("node.enrolled", node=server.node_id)) == 1


def test_an_agent_killed_before_its_first_request_joins_when_it_starts_again(
    plane: ControlPlane, agent: Make, proxy: Callable[[ControlPlane], Proxy]
) -> None:
    """Field case 5."""
    line = proxy(plane)
    line.rule = always(Fault(status=503))
    server = agent(line.url, MODELFORGE_AGENT_ENROLLMENT_TOKEN=plane.invite(display_name="killed early")).start()
    until(lambda: line.seen, "the agent tried")
    identity = server.node_id
    server.kill()
    line.rule = always(FINE)
    server.start()
    seen(plane, server, "online")
    assert server.node_id == identity


def test_a_gateway_in_trouble_costs_beats_and_nothing_else(
    plane: ControlPlane, agent: Make, proxy: Callable[[ControlPlane], Proxy]
) -> None:
    """Field case 40."""
    line = proxy(plane)
    server = join(plane, agent, url=line.url, name="behind a gateway")
    process, credential = server.pid, server.credential
    line.rule = always(Fault(status=503, headers={"Retry-After": "1"}))
    seen(plane, server, "stale")
    line.rule = always(FINE)
    (returned,) = told(plane, server, "node.returned")
    assert seen(plane, server, "online")["refused_code"] == ""
    assert (server.pid, server.running, server.credential) == (process, True, credential)
    assert returned["details"]["restarted"] is False


def test_a_redirect_is_not_followed_and_the_agent_says_which_address_to_set(
    plane: ControlPlane, agent: Make, proxy: Callable[[ControlPlane], Proxy]
) -> None:
    """Field case 27."""
    line, elsewhere = proxy(plane), proxy(plane)
    line.rule = lambda path: Fault(status=301, headers={"Location": elsewhere.url + path})
    server = agent(line.url, MODELFORGE_AGENT_ENROLLMENT_TOKEN=plane.invite(display_name="redirected")).start()
    hint = f"Set MODELFORGE_AGENT_CONTROL_PLANE_URL={elsewhere.url}"
    until(lambda: hint in server.log, "the hint in the log")
    until(lambda: hint in server.health()[1], "the hint in the health check", every=0.3)
    assert server.health()[0] == 1
    assert elsewhere.seen == []
