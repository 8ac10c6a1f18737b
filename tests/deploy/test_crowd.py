"""A thousand agents, each the real client with a credential of its own, beat at one stack over HTTPS for minutes."""

import heapq
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID, uuid4

import pytest

from agent import backoff, protocol, wire
from agent.client import Client
from agent.config import Link
from agent.trouble import Trouble
from agent.trust import trust
from tests.deploy import engine
from tests.deploy.parts import Stack
from tests.parts.ports import until

CROWD = 1000
AT_ONCE = 16
SLOWEST_P99 = 2.0
"""Seconds, on a machine that also runs the thousand agents. An agent gives an answer twenty."""


@dataclass(eq=False)
class Member:
    """One agent: its connection, its identity, its sequence."""

    client: Client
    node_id: UUID
    credential: str
    boot_id: UUID = field(default_factory=uuid4)
    sequence: int = 0
    rng: Random = field(default_factory=Random)

    def beat(self) -> wire.BeatReply:
        """One beat, as the agent's loop sends it."""
        self.sequence += 1
        body = wire.Beat(sent_at=datetime.now(UTC), boot_id=self.boot_id, sequence=self.sequence, agent_version="0.1.0")
        return self.client.call("POST", protocol.HEARTBEAT, bearer=self.credential, answer=wire.BeatReply, body=body)


@dataclass
class Tally:
    """What the crowd saw."""

    seconds: list[float] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    intervals: set[float] = field(default_factory=set)


@pytest.fixture(scope="module", autouse=True)
def _the_name_is_known(stack: Stack) -> Iterator[None]:
    """As a DNS would tell it."""
    real = socket.getaddrinfo

    def told(host: Any, *rest: Any, **more: Any) -> Any:
        return real("127.0.0.1" if host == stack.site.name else host, *rest, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", told)
        yield


@pytest.fixture(scope="module")
def crowd(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> list[Member]:
    """A thousand nodes, invited and enrolled over the wire."""
    until(stack.is_ready, "the stack is ready", within=60, every=0.2)
    link = Link(url=stack.site.url, ca_file=stack.site.ca)
    context = trust(link)

    def join(number: int) -> Member:
        client, node_id = Client(link, context), uuid4()
        token = stack.invite(f"crowd{number:04}")
        body = wire.Enroll(node_id=node_id, boot_id=uuid4(), hostname="crowd", agent_version="0.1.0")
        told = client.call("POST", protocol.ENROLL, bearer=token, answer=wire.Enrolled, body=body)
        return Member(client, node_id, told.credential)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(join, range(CROWD)))


def beat_for(crowd: list[Member], seconds: float) -> Tally:
    """Let everybody beat in his own time, as he is told to."""
    tally, lock = Tally(), threading.Lock()
    start = time.monotonic()
    rng = Random(1)
    due = [(start + rng.uniform(0, 10), number) for number in range(len(crowd))]
    heapq.heapify(due)

    def work() -> None:
        while True:
            with lock:
                if not due:
                    return
                at, number = heapq.heappop(due)
            if at > start + seconds:
                return
            time.sleep(max(0.0, at - time.monotonic()))
            member, asked = crowd[number], time.monotonic()
            try:
                reply = member.beat()
            except Trouble as trouble:
                with lock:
                    tally.troubles.append(str(trouble))
                    heapq.heappush(due, (time.monotonic() + 2, number))
                continue
            took = time.monotonic() - asked
            interval = reply.heartbeat_interval_seconds
            with lock:
                tally.seconds.append(took)
                tally.intervals.add(interval)
                wait = backoff.steady(timedelta(seconds=interval), member.rng).total_seconds()
                heapq.heappush(due, (time.monotonic() + wait, number))

    threads = [threading.Thread(target=work) for _ in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return tally


def cpu_seconds(stack: Stack) -> dict[str, float]:
    """What each service's containers used so far."""
    used = {}
    for service in ("proxy", "web", "postgres", "redis", "worker", "beat"):
        (container,) = stack.server.containers(service)
        ticks = 0
        for pid in engine.docker("top", container, "-eo", "pid").split()[1:]:
            try:
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            ticks += int(fields[11]) + int(fields[12])
        used[service] = ticks / 100
    return used


@pytest.mark.timeout(1200)
def test_a_thousand_agents_beat_without_an_error(
    stack: Stack, crowd: list[Member], request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    lasts = float(request.config.getoption("--crowd-seconds"))
    before = cpu_seconds(stack)
    tally = beat_for(crowd, lasts)
    used = {service: seconds - before[service] for service, seconds in cpu_seconds(stack).items()}
    took = sorted(tally.seconds)
    p50, p99 = took[len(took) // 2], took[int(len(took) * 0.99)]
    with capsys.disabled():
        rate = len(took) / lasts
        print(f"\n{CROWD} agents, {lasts:.0f} s: {len(took)} beats ({rate:.0f}/s), {len(tally.troubles)} troubles")  # noqa: T201
        print(f"  answer: median {p50 * 1000:.0f} ms, p99 {p99 * 1000:.0f} ms, slowest {took[-1] * 1000:.0f} ms")  # noqa: T201
        shown = ", ".join(f"{service} {seconds / lasts:.0%}" for service, seconds in used.items())
        print(f"  cores: {shown}; in all {sum(used.values()) / len(took) * 1000:.1f} CPU seconds per 1000 beats")  # noqa: T201
    assert tally.troubles == []
    assert p99 < SLOWEST_P99
    longest = max(tally.intervals)
    assert all(member.sequence >= (lasts - 2 * longest) / (2 * longest) for member in crowd)
    online = stack.site.api("GET", "hardware/nodes?liveness=online&page_size=1")["count"]
    assert online >= CROWD
