"""Control planes that speak TLS with certificates of a private CA made for the test, and how they are asked."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from agent import protocol, wire
from agent.client import Client
from agent.config import Link
from tests.agent.scripted import CREDENTIAL, ControlPlane

CA_NAME = "The Office's Own CA"

Serve = Callable[..., ControlPlane]
"""Starts a control plane whose certificate is for the given names (127.0.0.1), valid until ``not_after``."""


def ask(plane: ControlPlane, *, ca_file: Path | None = None, proxy: str | None = None, verify: bool = True) -> None:
    """Beat once."""
    link = Link(url=plane.url, ca_file=ca_file, proxy=proxy, tls_verify=verify, timeout=timedelta(seconds=5))
    client = Client(link)
    try:
        client.call("POST", protocol.HEARTBEAT, bearer=CREDENTIAL, answer=wire.BeatReply)
    finally:
        client.close()
