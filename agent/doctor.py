"""The command that finds out why a node does not get through: checks every step of the way and says what to do."""

import os
import socket
import ssl
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from urllib.parse import urlsplit
from uuid import UUID

import msgspec

from agent import checkup, config, daemon, health, mounts, premises, protocol, trouble, volumes, wire
from agent.client import Client, Reply
from agent.config import Config, ConfigError, Link
from agent.finding import EXIT_CONFIG, EXIT_OK, EXIT_UNREACHABLE, Finding
from agent.gpus import Gpus
from agent.record import StateError
from agent.state import State
from agent.trouble import Trouble
from agent.trust import trust
from agent.wire import Reading

STEP = timedelta(seconds=10)
EXPIRES_SOON = timedelta(days=14)
LITTLE_SPACE_BYTES = 1024**3
_SKEW = timedelta(seconds=60)


def main(_: object = None) -> int:
    """``doctor``: prints a line for each check; exit code 0, or that of the first failure."""
    worst = EXIT_OK
    for finding in examine():
        sys.stdout.write(f"{finding}\n")
        sys.stdout.flush()
        worst = worst or finding.exit_code
    return worst


def examine() -> Iterator[Finding]:
    """All checks, in the order in which a request meets them."""
    try:
        settings = config.load(os.environ)
    except ConfigError as error:
        for fault in error.faults:
            yield Finding("FAIL", "configuration", fault, EXIT_CONFIG)
        return
    yield Finding("ok", "configuration", f"control plane at {settings.link.url}")
    for warning in settings.warnings:
        yield Finding("warn", "configuration", warning)
    yield from state(settings)
    yield from disks(settings)
    yield from checkup.of_roots(settings, _node_id(settings))
    yield from driver(settings)
    yield from way(settings.link)
    yield checkup.of_hub(settings.hub)
    yield from checkup.of_bandwidth(settings.bandwidth, datetime.now(UTC))
    yield running(settings)


def running(settings: Config) -> Finding:
    """How the agent fares that runs here; a parked one waits for a person, whatever else is in order."""
    report, verdict = health.read(settings.run_dir), health.of_folder(settings.run_dir)
    if report is not None and report.state == "parked" and health.is_alive(report.pid):
        text = f"{verdict.line.rstrip('.')}. It goes on by itself once that is mended, or at once after a restart."
        return Finding("FAIL", "agent", text, EXIT_UNREACHABLE)
    return Finding("ok" if verdict.healthy else "warn", "agent", verdict.line)


def state(settings: Config) -> Iterator[Finding]:
    """The identity on disk."""
    folder = State(settings.state_dir)
    try:
        node_id, credential = folder.known_id(), folder.credential.peek()
    except StateError as error:
        yield Finding("FAIL", "state", str(error), EXIT_CONFIG)
        return
    if mounts.ephemeral(settings.state_dir):
        allowed = settings.allow_ephemeral_state
        text = f"{settings.state_dir} is no volume: the node's identity dies with the container. Mount one there."
        yield Finding("warn" if allowed else "FAIL", "state", text, EXIT_OK if allowed else EXIT_CONFIG)
    if node_id is not None:
        yield Finding("ok", "state", f"this node is {node_id}")
    if credential is not None:
        yield Finding("ok", "credential", "stored")
        if settings.token is not None:
            yield Finding("warn", "credential", f"{settings.token.source} is set but not needed: unset it.")
    elif settings.token is not None:
        yield Finding("ok", "credential", "none yet; the agent will join with the enrollment token")
    else:
        yield Finding("FAIL", "credential", f"none, and no {config.TOKEN}: create a token and set it.", EXIT_CONFIG)


def _node_id(settings: Config) -> UUID | None:
    try:
        known = State(settings.state_dir).known_id()
    except StateError:  # told already
        return None
    return UUID(known) if known else None


def disks(settings: Config) -> Iterator[Finding]:
    """The four data volumes."""
    for volume in daemon.volumes_of(settings):
        subject = f"volume {volume.name}"
        refused = premises.fault(volume, allow_ephemeral=settings.allow_ephemeral_state)
        if refused is not None:
            yield Finding("FAIL", subject, str(refused), refused.exit_code)
            continue
        found = volumes.facts(volume)
        if found.total_bytes.value is None or not found.writable.value:
            level: Literal["warn", "FAIL"] = "FAIL" if volume.name == "state" else "warn"
            text = f"{volume.path} cannot be looked at ({_why(found.total_bytes)}). Mount a folder there."
            if found.total_bytes.value is not None:
                text = f"{volume.path} cannot be written ({_why(found.writable)})."
            yield Finding(level, subject, text, EXIT_CONFIG if level == "FAIL" else EXIT_OK)
            continue
        free = found.free_bytes.value or 0
        mounted = "a mount" if found.is_mount.value else "no mount of its own"
        text = f"{volume.path}: {found.filesystem.value or 'unknown'}, {mounted}, {free / 1024**3:.1f} GiB free"
        if free < LITTLE_SPACE_BYTES:
            yield Finding("warn", subject, f"{text}. Free some space there.")
        elif found.filesystem.value == "fuse.shfs":
            yield Finding("warn", subject, f"{text}. A FUSE share is refused for models: use the disk's own path.")
        else:
            yield Finding("ok", subject, text)


def driver(settings: Config) -> Iterator[Finding]:
    """What NVML says."""
    gpus = Gpus(deadline=settings.nvml_timeout)
    try:
        runtime, devices = gpus.facts()
    finally:
        gpus.close()
    if runtime.state == "absent":
        text = "no NVIDIA driver here. On a GPU server: is the NVIDIA Container Toolkit installed, are GPUs requested?"
        yield Finding("warn" if (runtime.pci_devices.value or 0) else "ok", "NVML", text)
    elif runtime.state == "failed":
        code = f" (NVML {runtime.code})" if runtime.code is not None else ""
        yield Finding("warn", "NVML", f"{runtime.message or 'failed'}{code}. Compare with nvidia-smi on the host.")
    else:
        yield Finding("ok", "NVML", f"driver {runtime.driver_version.value or '?'}, {len(devices)} GPU(s) or instances")


def way(link: Link) -> Iterator[Finding]:
    """Name, connection, TLS, answer, clock and protocol; stops where it breaks."""
    host, port = link.parts.hostname or "", link.parts.port or (443 if link.encrypted else 80)
    if link.proxy:
        proxy = urlsplit(link.proxy)
        yield Finding("ok", "proxy", f"through {trouble.host_of(link.proxy)}")
        host, port = proxy.hostname or "", proxy.port or (443 if proxy.scheme == "https" else 80)
    try:
        addresses = sorted({str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)})
    except OSError as error:
        text = f"the name {host} is not known here ({error}). Check it, this machine's DNS, or Compose's extra_hosts."
        yield Finding("FAIL", "DNS", text, EXIT_UNREACHABLE)
        return
    yield Finding("ok", "DNS", f"{host} is {', '.join(addresses[:4])}")
    try:
        with socket.create_connection((host, port), timeout=STEP.total_seconds()) as connection:
            yield Finding("ok", "TCP", f"port {port} of {host} answers")
            if link.encrypted and not link.proxy:
                yield handshake(link, host, connection)
    except ssl.SSLError as error:
        yield Finding("FAIL", "TLS", str(trouble.of_connection(error, link)), EXIT_UNREACHABLE)
        return
    except OSError as error:
        text = f"port {port} of {host} cannot be reached ({error}). A firewall, a wrong port, or nothing runs there."
        yield Finding("FAIL", "TCP", text, EXIT_UNREACHABLE)
        return
    yield from answers(link)


def handshake(link: Link, host: str, connection: socket.socket) -> Finding:
    """TLS with the agent's own trust; ssl.SSLError where it fails."""
    with trust(link).wrap_socket(connection, server_hostname=host) as secured:
        spoken, certificate = secured.version(), secured.getpeercert() or {}
    if not link.tls_verify:
        return Finding("warn", "TLS", f"{spoken}, not verified: {config.TLS_VERIFY}=false")
    begins, ends = (
        datetime.fromtimestamp(ssl.cert_time_to_seconds(str(certificate[name])), UTC)
        for name in ("notBefore", "notAfter")
    )
    by = f" with {link.ca_file}" if link.ca_file else ""
    text = f"{spoken}, certificate verified{by}, valid until {ends:%Y-%m-%d}"
    if expires_soon(begins, ends, datetime.now(UTC)):
        return Finding("warn", "TLS", f"{text}: renew it soon.")
    return Finding("ok", "TLS", text)


def expires_soon(begins: datetime, ends: datetime, now: datetime) -> bool:
    """Whether somebody should look; short ones are renewed by machines, when a third of their life is left."""
    return ends - now < min(EXPIRES_SOON, (ends - begins) / 3)


def answers(link: Link) -> Iterator[Finding]:
    """What the control plane itself says, without a credential: a beat from here would interfere with the agent's."""
    client = Client(link)
    try:
        alive = client.exchange("GET", "/healthz", timeout=STEP)
        if alive.status == 200:
            yield Finding("ok", "control plane", "answers /healthz")
        else:
            yield Finding("FAIL", "control plane", f"/healthz answered {alive.status}", EXIT_UNREACHABLE)
        if client.skew is None:
            yield Finding("warn", "clock", "the answer carries no Date, so that the clocks cannot be compared")
        elif abs(client.skew) > _SKEW:
            text = f"differs from the control plane's by {client.skew.total_seconds():.0f} s: set it (NTP)"
            yield Finding("warn", "clock", text)
        else:
            yield Finding("ok", "clock", "agrees with the control plane's")
        headers = {"Content-Type": "application/json"}
        yield spoken_there(client.exchange("POST", protocol.HEARTBEAT, headers=headers, data=b"{}", timeout=STEP), link)
    except Trouble as met:
        yield Finding("FAIL", "control plane", str(met), EXIT_UNREACHABLE)
    finally:
        client.close()


def spoken_there(reply: Reply, link: Link) -> Finding:
    """Whether the API there is ModelForge's and speaks our protocol: 401 is the right answer to nobody."""
    try:
        problem = msgspec.json.decode(reply.body, type=wire.Problem)
    except msgspec.DecodeError:
        text = f"{link.url}{protocol.HEARTBEAT} answered {reply.status} with something that is not ModelForge's."
        return Finding("FAIL", "protocol", f"{text} Check {config.URL}.", EXIT_UNREACHABLE)
    if problem.code == protocol.Code.PROTOCOL_UNSUPPORTED:
        there = ", ".join(map(str, problem.protocols)) or "another"
        text = f"the control plane speaks {there}, this agent {protocol.VERSION}: upgrade the older of the two."
        return Finding("FAIL", "protocol", text, EXIT_UNREACHABLE)
    if reply.status == 401:
        return Finding("ok", "protocol", f"version {protocol.VERSION} is spoken there")
    return Finding("warn", "protocol", f"answered {reply.status} {problem.code}: {problem.detail or problem.title}")


def _why(reading: Reading[Any]) -> str:
    if reading.code is not None:
        return os.strerror(reading.code)
    return reading.reason or "unknown"
