"""Parts of the stack die under beats, one after the other: it heals by itself, and says the truth all along."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from tests.deploy import engine
from tests.deploy.parts import BEAT_SECONDS, NodeAgent, Stack
from tests.deploy.watching import Watch, crash, started_again, started_at
from tests.parts.ports import until

DOWN_FOR = 10.0
"""Longer than three beats: whoever were to blame the nodes would have called them stale, then offline."""
HEALS_WITHIN = 60.0
RETRY = 3 * BEAT_SECONDS
"""The longest wait of an agent whose control plane was away for so short a time, and some."""

FILL_TMP = """
with open("/tmp/full", "wb") as file:
    try:
        while True:
            file.write(b"x" * 65536)
    except OSError as error:
        print(error.strerror)
"""
EMPTY_TMP = "import os; os.unlink('/tmp/full')"


@pytest.fixture(autouse=True)
def _whole(stack: Stack, agent: NodeAgent) -> Iterator[None]:
    """Each test begins with a whole stack, and leaves one with a history that is proven."""
    agent.wait_online()
    until(stack.is_ready, "the stack is ready", within=HEALS_WITHIN, every=0.2)
    began = datetime.now(UTC)
    yield
    agent.wait_online(within=HEALS_WITHIN)
    until(stack.is_ready, "the stack is ready again", within=HEALS_WITHIN, every=0.2)
    assert "Traceback" not in agent.log()
    since = began.isoformat().replace("+00:00", "Z")
    blamed = stack.site.events(since=since, node=agent.node_id, type="node.offline")
    assert blamed == []
    stack.manage("audit_verify")


def beats_within(stack: Stack, agent: NodeAgent, seconds: float) -> None:
    """The control plane hears this agent within so many seconds from now."""
    now = datetime.now(UTC).isoformat()
    headers = {"X-ModelForge-Admin-Token": stack.site.admin_token}

    def heard() -> bool:
        answer = stack.site.ask("GET", f"/api/v1/hardware/nodes/{agent.node_id}", headers=headers)
        return answer.status == 200 and answer.json["last_heard_at"] > now

    until(heard, "a beat is heard", within=seconds, every=0.2)


def is_content(watch: Watch) -> None:
    """/readyz is good, asked from now on."""
    now = time.time()
    until(lambda: watch.seen[-1].at > now + 1 and watch.seen[-1].ready, "/readyz is content", within=HEALS_WITHIN)


@pytest.mark.parametrize(("service", "check"), [("postgres", "database"), ("redis", "broker")])
def test_a_server_that_is_away_is_told_and_missed_by_nobody(
    stack: Stack, agent: NodeAgent, service: str, check: str
) -> None:
    (container,) = stack.server.containers(service)
    with Watch(stack) as watch:
        until(lambda: watch.promised, "acts go through", every=0.1)
        engine.docker("kill", container)
        down = time.time()
        try:
            until(lambda: any(seen.is_ill(check) for seen in watch.seen), f"/readyz misses the {check}", every=0.1)
            until(lambda: time.time() > down + DOWN_FOR, "the outage lasts", within=DOWN_FOR + 1)
        finally:
            up = time.time()
            engine.docker("start", container)
        is_content(watch)
        beats_within(stack, agent, RETRY)
        before = len(watch.promised)
        until(lambda: len(watch.promised) > before, "acts go through again", every=0.1)
    assert not [seen for seen in watch.between(down, up) if seen.ready]
    assert watch.kept() == set(watch.promised)


@pytest.mark.parametrize("service", ["postgres", "redis", "worker", "beat", "proxy"])
def test_what_crashes_is_started_again_and_the_rest_finds_it(stack: Stack, agent: NodeAgent, service: str) -> None:
    (container,) = stack.server.containers(service)
    before = started_at(container)
    with Watch(stack) as watch:
        until(lambda: watch.promised, "acts go through", every=0.1)
        crash(container)
        started_again(container, before)
        is_content(watch)
        beats_within(stack, agent, RETRY)
    assert watch.kept() == set(watch.promised)


def test_a_web_server_that_crashes_costs_nobody_more_than_a_moment(stack: Stack, agent: NodeAgent) -> None:
    """Pages wait until a web server is there again, agents and scripts try again."""
    (container,) = stack.server.containers("web")
    before = started_at(container)
    with Watch(stack) as watch:
        until(lambda: watch.promised, "acts go through", every=0.1)
        crash(container)
        started_again(container, before)
        beats_within(stack, agent, RETRY)
        made = len(watch.promised)
        until(lambda: len(watch.promised) > made, "acts go through again", every=0.1)
    assert watch.complaints() == []
    assert watch.pause() < HEALS_WITHIN / 2
    assert watch.kept() == set(watch.promised)


def test_a_full_tmp_stops_no_beat_and_is_told(stack: Stack, agent: NodeAgent) -> None:
    """The health file cannot be written: docker says unhealthy, the control plane goes on hearing the node."""
    assert agent.python(FILL_TMP) == "No space left on device"
    try:
        for _ in range(3):
            beats_within(stack, agent, RETRY)
        until(lambda: agent.health() != 0, "the health check notices", within=60, every=0.5)
    finally:
        agent.python(EMPTY_TMP)
    until(lambda: agent.health() == 0, "the health check is content again", within=30, every=0.5)
