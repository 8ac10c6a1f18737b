"""What a heartbeat costs: beats per second over real HTTP beside an empty view, and CPU seconds per 1,000."""

import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import psutil
from django.core.management import call_command
from django.db import connection, connections

from agent import protocol
from bench import load
from bench.fleet import Member, enlist
from bench.report import Report
from tests.parts.ports import free_port, until

FLEET = 10_000
CONNECTIONS = 4
SECONDS = 3.0
ROUNDS = 5

SERVERS = {
    "granian": [
        "-m",
        "granian",
        "--interface",
        "wsgi",
        "--workers",
        "1",
        "--blocking-threads",
        "1",
        "--no-ws",
        "--host",
        "127.0.0.1",
        "--port",
        "{port}",
        "--log-level",
        "warning",
        "modelforge.wsgi:application",
    ],
    "gunicorn": [
        "-m",
        "gunicorn",
        "--workers",
        "1",
        "--bind",
        "127.0.0.1:{port}",
        "--log-level",
        "warning",
        "modelforge.wsgi:application",
    ],
}


def beats_of(members: list[Member], port: int) -> Iterator[bytes]:
    """Prepared beats of these nodes in turn, each with the next sequence number."""
    for turn in itertools.count(int(time.time())):  # higher than those of the server before
        sent = datetime.now(UTC).isoformat()
        for member in members:
            body = json.dumps(
                {
                    "boot_id": str(member.boot_id),
                    "sequence": turn,
                    "sent_at": sent,
                    "agent_version": "0.1.0",
                    "facts_digest": "known",
                }
            ).encode()
            yield (
                f"POST {protocol.HEARTBEAT} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer "
                f"{member.secret}\r\n{protocol.VERSION_HEADER}: 1\r\nContent-Type: application/json\r\n"
                f"Accept: application/json\r\nUser-Agent: modelforge-agent/0.1.0\r\nContent-Length: {len(body)}\r\n\r\n"
            ).encode() + body


def empty(port: int) -> Iterator[bytes]:
    """Requests for the view that asks ``SELECT 1``."""
    request = (
        f"GET /bench/select-one HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: */*\r\nUser-Agent: bench\r\n\r\n"
    ).encode()
    return itertools.repeat(request)


def cpu(pid: int) -> float:
    """CPU seconds of a process and its children so far."""
    root = psutil.Process(pid)
    total = 0.0
    for process in [root, *root.children(recursive=True)]:
        times = process.cpu_times()
        total += times.user + times.system
    return total


def measure(report: Report, postgres_pid: int, database: str, members: list[Member], server: str) -> None:
    """Beats and empty requests in turn, under one server."""
    port = free_port()
    environment = os.environ | {"MODELFORGE_DATABASE_URL": database, "DJANGO_SETTINGS_MODULE": "bench.settings"}
    command = [sys.executable, *(part.format(port=port) for part in SERVERS[server])]
    web = subprocess.Popen(command, env=environment, cwd=Path(__file__).parent.parent)
    try:
        until(lambda: _answers(port), f"{server} answers")
        lots = [members[number::CONNECTIONS] for number in range(CONNECTIONS)]
        streams = [beats_of(lot, port) for lot in lots]
        empties = [empty(port) for _ in range(CONNECTIONS)]
        load.run(port, streams, 2.0)
        load.run(port, empties, 1.0)
        ratios, rates, bases, web_cpu, pg_cpu = [], [], [], [], []
        for _ in range(ROUNDS):
            base = load.run(port, empties, SECONDS / 2)
            before = cpu(web.pid), cpu(postgres_pid)
            beats = load.run(port, streams, SECONDS)
            after = cpu(web.pid), cpu(postgres_pid)
            assert not beats.wrong, f"{beats.wrong} beats were not answered with 200: {beats.complaint}"
            assert not base.wrong, base.complaint
            ratios.append(beats.rate / base.rate)
            rates.append(beats.rate)
            bases.append(base.rate)
            web_cpu.append((after[0] - before[0]) / beats.answers * 1000)
            pg_cpu.append((after[1] - before[1]) / beats.answers * 1000)
    finally:
        web.terminate()
        web.wait(20)
    middle = statistics.median
    report.row(
        server,
        f"{middle(rates):.0f}",
        f"{middle(bases):.0f}",
        f"{middle(ratios):.2f}",
        f"{middle(web_cpu):.2f}",
        f"{middle(pg_cpu):.2f}",
    )
    if server == "granian":
        report.bound("beats beside the empty view", middle(ratios), least=0.34)
        report.bound("CPU seconds per 1,000 beats, web and PostgreSQL", middle(web_cpu) + middle(pg_cpu), most=1.0)


def _answers(port: int) -> bool:
    try:
        seen = load.run(port, [empty(port)], 0.1)
    except OSError:
        return False
    return seen.answers > 0 and seen.wrong == 0


def hot_updates() -> tuple[int, int]:
    """Updates of heartbeat rows so far, and how many of them PostgreSQL could rewrite in place."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'nodes_heartbeat'")
        updates, hot = cursor.fetchone()
    return updates, hot


def main(report: Report, postgres_pid: int, database: str) -> None:
    """All servers, on one database with 10,000 nodes."""
    call_command("migrate", verbosity=0)
    members = enlist(FLEET)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    report.heading(f"A beat, {FLEET:,} nodes on PostgreSQL, one web process")
    report.row("server", "beats/s", "SELECT 1 /s", "ratio", "web CPU s/1000", "PG CPU s/1000")
    before = hot_updates()
    for server in SERVERS:
        measure(report, postgres_pid, database, members, server)
    after = hot_updates()
    report.row("heartbeat rows rewritten in place (HOT)", f"{(after[1] - before[1]) / (after[0] - before[0]):.1%}")
    connections.close_all()
