"""Parts of an agent for tests without sockets and without real time: a clock that is told, a client that answers."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from threading import Event
from typing import Any
from uuid import UUID

import msgspec

from agent import protocol, wire
from agent.client import Client
from agent.health import Health
from agent.identity import Identity
from agent.lookout import Lookout
from agent.observer import Observer
from agent.pulse import Pulse
from agent.state import State
from agent.tidying import Tidying
from agent.trouble import Faltering, Refused, Trouble, Unreachable
from agent.variables import Secret
from agent.wire import Reading
from agent.worker import Worker
from tests.agent.scripted import CREDENTIAL, RENEWED, TOKEN

NODE = UUID("6f1c1a53-9d0f-4a0e-8f0e-3f8f6f1f2a11")
BOOT = UUID("0b0a7c1e-5a55-4d7b-9a39-9f6f35e1b001")
URL = "https://modelforge.example"
UNKNOWN: Reading[Any] = Reading(reason="unsupported")


class Clock:
    """Time that passes when the test says so."""

    def __init__(self) -> None:
        self.at = 1000.0

    def now(self) -> datetime:
        return datetime(2026, 3, 1, 12, tzinfo=UTC) + timedelta(seconds=self.at)

    def monotonic(self) -> float:
        return self.at

    def pass_(self, wait: timedelta) -> None:
        """Let so much time pass."""
        self.at += wait.total_seconds()


def refused(code: str, status: int = 401, *, retryable: bool = False, retry_after: timedelta | None = None) -> Refused:
    """The control plane's no."""
    problem = wire.Problem(status=status, code=code, detail=f"because of {code}", retryable=retryable)
    return Refused(problem, status=status, retry_after=retry_after, request_id="req-1")


def gone() -> Trouble:
    """A control plane that does not answer."""
    return Unreachable(URL, "refused", "nothing listens there")


def gateway() -> Trouble:
    """A gateway without a control plane behind it."""
    return Faltering(URL, 503, retry_after=None)


class Answering(Client):
    """A client that asks a function instead of a server; keeps what was sent."""

    def __init__(self, interval: float = 15.0) -> None:
        self.skew = None
        self.reply = wire.BeatReply(heartbeat_interval_seconds=interval, telemetry_interval_seconds=60)
        self.trouble: Callable[[str], Trouble | None] = lambda _: None
        self.sent: list[tuple[str, str | None, Any]] = []
        self.issued = [CREDENTIAL]
        self.claimed = wire.ClaimReply()

    def call(
        self,
        method: str,
        path: str,
        *,
        bearer: str | None,
        answer: type[Any],
        body: msgspec.Struct | None = None,
        within: timedelta | None = None,
    ) -> Any:
        self.sent.append((path, bearer, body))
        trouble = self.trouble(path)
        if trouble is not None:
            raise trouble
        if path == protocol.ENROLL:
            assert isinstance(body, wire.Enroll)
            credential = self.issued.pop(0) if len(self.issued) > 1 else self.issued[0]
            return wire.Enrolled(
                node_id=body.node_id, credential=credential, display_name="x", heartbeat_interval_seconds=15
            )
        if path == protocol.CREDENTIAL:
            return wire.CredentialReply(credential=RENEWED, old_dies_at=datetime(2027, 1, 1, tzinfo=UTC))
        if path == protocol.FACTS:
            return wire.FactsReply(facts_digest="d", changed=True)
        if path == protocol.CLAIM:
            return self.claimed
        return self.reply

    def of(self, path: str) -> list[Any]:
        """The bodies that were sent there."""
        return [body for sent, _, body in self.sent if sent == path]

    def bearers(self, path: str) -> list[str | None]:
        """The tokens and credentials that were shown there."""
        return [bearer for sent, bearer, _ in self.sent if sent == path]


def telemetry(at: datetime) -> wire.Telemetry:
    """A sample of nothing in particular."""
    host = wire.HostTelemetry(
        cpu_percent=UNKNOWN, load_1m=UNKNOWN, memory_used_bytes=UNKNOWN, memory_available_bytes=UNKNOWN
    )
    return wire.Telemetry(at=at, host=host, gpu_runtime="absent")


def facts(hostname: str = "server01") -> wire.Facts:
    """A server of nothing in particular."""
    return wire.Facts(
        boot_id=BOOT,
        observed_at=datetime(2026, 3, 1, tzinfo=UTC),
        host=wire.HostFacts(
            hostname=hostname,
            os="Debian",
            kernel="6",
            architecture="x86_64",
            cpu_model=UNKNOWN,
            cpu_visible=UNKNOWN,
            cpu_limit=UNKNOWN,
            memory_visible_bytes=UNKNOWN,
            memory_limit_bytes=UNKNOWN,
            swap_bytes=UNKNOWN,
        ),
        agent=wire.AgentFacts(
            version="0.1.0",
            protocol=1,
            python="3.11",
            started_at=datetime(2026, 3, 1, tzinfo=UTC),
            tls_verify=True,
        ),
        gpu_runtime=wire.GpuRuntime(state="absent"),
    )


def no_roots(order: wire.RootOrder, *, now: datetime, probe: bool) -> wire.RootProof:
    """An agent without a storage root."""
    raise AssertionError("no root was told of")


def no_work(job: wire.Job, **_: Any) -> wire.Result:
    """An agent without work."""
    raise AssertionError("no job was given")


class Quiet(Health):
    """Health that is told to nobody: a crowd would write for seconds."""

    def _change(self, **_: object) -> None:
        pass


class Parts:
    """An agent in parts: real identity on a real folder, real loops, told time, scripted answers."""

    def __init__(self, folder: Path, *, enrolled: bool = True, token: str | None = None, seed: int = 1) -> None:
        self.clock = Clock()
        self.client = Answering()
        self.observers_client = Answering()
        self.workers_client = Answering()
        self.state = State(folder / "state")
        self.state.folder.mkdir(parents=True, exist_ok=True)
        if enrolled:
            self.state.keep_node_id(NODE)
            self.state.credential.keep(CREDENTIAL)
        token = TOKEN if token is None and not enrolled else token
        self.identity = Identity(self.state, Secret(token) if token else None, mint=lambda: NODE)
        folder.joinpath("run").mkdir(exist_ok=True)
        self.run_dir = folder / "run"
        self.health = Health(self.run_dir, self.clock)
        self.hostname = "server01"
        self.looks = 0
        self.observer = Observer(
            client=self.observers_client,
            identity=self.identity,
            health=self.health,
            clock=self.clock,
            rng=Random(seed),
            gather=self._gather,
            measure=telemetry,
            interval=timedelta(seconds=300),
        )
        self.lookout = Lookout(
            prove=no_roots,
            tidying=Tidying(
                partials=lambda root: [],
                weigh=lambda root, jobs: 0,
                forget=lambda root, jobs: None,
                being_deleted=lambda root: [],
            ),
            clock=self.clock,
            wake=lambda: None,
        )
        self.worker = Worker(
            client=self.workers_client,
            identity=self.identity,
            lookout=self.lookout,
            perform=no_work,
            health=self.health,
            clock=self.clock,
            rng=Random(seed),
            boot_id=BOOT,
            wakes=Event(),
        )
        self.pulse = self.another_pulse(self.client, seed=seed)

    def another_pulse(self, client: Client, *, seed: int, health: Health | None = None) -> Pulse:
        """One more beat loop on the same identity, for crowds."""
        return Pulse(
            client=client,
            identity=self.identity,
            observer=self.observer,
            worker=self.worker,
            health=health or self.health,
            clock=self.clock,
            rng=Random(seed),
            boot_id=BOOT,
            hostname="server01",
            display_name="Server 01",
        )

    def beat(self) -> timedelta:
        """One turn of the beat loop, and the wait that it asks for passes."""
        wait = self.pulse.turn()
        self.clock.pass_(wait)
        return wait

    def hour(self) -> list[timedelta]:
        """Beat for an hour; returns the waits in between."""
        until = self.clock.at + 3600
        waits = []
        while self.clock.at < until:
            waits.append(self.beat())
        return waits

    def _gather(self, now: datetime) -> wire.Facts:
        self.looks += 1
        return facts(self.hostname)
