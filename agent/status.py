"""The commands that only look: ``status``, ``facts`` and ``version``."""

import argparse
import json
import os
import sys
from typing import Any
from uuid import UUID

import msgspec

from agent import __version__, config, daemon, facts, health, protocol, wire
from agent.clock import SystemClock
from agent.config import Config, ConfigError
from agent.gpus import Gpus
from agent.record import StateError
from agent.state import State

EXIT_OK, EXIT_CONFIG = 0, 78


def main(arguments: argparse.Namespace) -> int:
    """``status``, ``facts`` or ``version``: prints, and changes nothing."""
    if arguments.command == "version":
        sys.stdout.write(f"modelforge-agent {__version__}, protocol {protocol.VERSION}\n")
        return EXIT_OK
    try:
        settings = config.load(os.environ, need_control_plane=False)
    except ConfigError as error:
        for fault in error.faults:
            sys.stderr.write(fault + "\n")
        return EXIT_CONFIG
    if arguments.command == "facts":
        sys.stdout.write(look(settings, indent=0 if arguments.json else 2) + "\n")
        return EXIT_OK
    found = standing(settings)
    if arguments.json:
        sys.stdout.write(json.dumps(found) + "\n")
    else:
        width = max(map(len, found))
        lines = (
            f"{key.replace('_', ' '):<{width}}  {value if value not in (None, '') else '-'}"
            for key, value in found.items()
        )
        sys.stdout.write("\n".join(lines) + "\n")
    return EXIT_OK


def standing(settings: Config) -> dict[str, Any]:
    """This node's id, whether it holds a credential, and how its agent fares; never the credential itself."""
    state = State(settings.state_dir)
    problem = ""
    node_id, credential = None, False
    try:
        node_id = state.known_id()
        credential = state.credential.peek() is not None
    except StateError as error:
        problem = str(error)
    report = health.read(settings.run_dir)
    verdict = health.of_folder(settings.run_dir)
    return {
        "version": __version__,
        "protocol": protocol.VERSION,
        "control_plane": settings.link.url,
        "node_id": node_id,
        "credential": "stored" if credential else "none",
        "healthy": verdict.healthy,
        "health": verdict.line,
        "state": report.state if report else "",
        "code": report.code if report else "",
        "last_answered_at": report.last_ok_at if report else "",
        "job_id": report.job_id if report else "",
        "job_phase": report.job_phase if report else "",
        "job_percent": report.job_percent if report and report.job_id else None,
        "state_folder": str(settings.state_dir),
        "state_problem": problem,
    }


def look(settings: Config, *, indent: int) -> str:
    """What ``PUT agent/facts`` would say now, as JSON."""
    gpus = Gpus(deadline=settings.nvml_timeout)
    state = State(settings.state_dir)
    try:
        gathered = facts.gather(
            boot_id=UUID(int=0),
            agent=daemon.agent_facts(settings, state),
            hostname=settings.hostname,
            volumes=daemon.volumes_of(settings),
            gpus=gpus,
            now=SystemClock().now(),
        )
    finally:
        gpus.close()
    text = wire.encode(gathered)
    return (msgspec.json.format(text, indent=indent) if indent else text).decode()
