"""Where snapshots come from: the Hub or a mirror of it, how to get there, and what to show it."""

import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, urlsplit

from agent.addresses import goes_straight
from agent.config import Link, is_loopback
from agent.trust import trust
from agent.variables import Secret

PUBLIC = "https://huggingface.co"

Origin = tuple[str, str, int]
"""Scheme, host and port: who sees what a request carries."""


class Configured(Protocol):
    """The part of the agent's configuration that says where snapshots come from."""

    @property
    def hf_endpoint(self) -> str:
        """The Hub's address, checked, without a trailing slash."""

    @property
    def hf_token(self) -> Secret | None:
        """Shown to the Hub and to nobody else."""

    @property
    def hub_ca_file(self) -> Path | None:
        """Trust only this; None: the system's store."""

    @property
    def hub_proxy(self) -> str | None:
        """An HTTP proxy for everything that is fetched; may hold a password."""

    @property
    def hub_no_proxy(self) -> str:
        """Hosts that are reached without the proxy, as in NO_PROXY."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A Hub, spoken to in HTTPS (in HTTP on this machine only)."""

    endpoint: str = PUBLIC  # without a trailing slash
    token: Secret | None = None
    ca_file: Path | None = None
    proxy: str | None = field(default=None, repr=False)  # may hold a password
    no_proxy: str = ""

    @property
    def origin(self) -> Origin:
        """Who may see the token."""
        return origin(self.endpoint)

    @property
    def may_speak_http(self) -> bool:
        """Only where nobody can listen: the Hub is a stand-in on this machine."""
        scheme, host, _ = self.origin
        return scheme == "http" and is_loopback(host)

    def file_url(self, repo_id: str, commit: str, path: str) -> str:
        """Where the bytes of a file are asked for; the Hub answers with them or with a signed address."""
        return f"{self.endpoint}/{quote(repo_id)}/resolve/{quote(commit, safe='')}/{quote(path)}"

    def proxy_for(self, url: str) -> str | None:
        """The proxy on the way to ``url``; None where there is none."""
        if self.proxy is None or (self.no_proxy and goes_straight(url, self.no_proxy)):
            return None
        return self.proxy

    def trust(self) -> ssl.SSLContext:
        """Whom to believe; making it is slow, so it is made once and shared."""
        return trust(Link(url=self.endpoint, ca_file=self.ca_file))


def origin(url: str) -> Origin:
    """Scheme, host and port of an address; ValueError where it is none."""
    parts = urlsplit(url)
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise ValueError("no HTTP address")
    return parts.scheme, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)


def from_config(config: Configured) -> Source:
    """The source that the operator configured."""
    return Source(
        endpoint=config.hf_endpoint,
        token=config.hf_token,
        ca_file=config.hub_ca_file,
        proxy=config.hub_proxy,
        no_proxy=config.hub_no_proxy,
    )
