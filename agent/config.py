"""The agent's configuration: read once from the environment, checked as a whole, with a remedy for every fault."""

from collections.abc import MutableMapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from agent import addresses, bandwidth, hub, logs
from agent.addresses import is_loopback as is_loopback
from agent.bandwidth import Bandwidth
from agent.hub import Hub
from agent.protocol import API
from agent.variables import Secret, Variables

URL = "MODELFORGE_AGENT_CONTROL_PLANE_URL"
TOKEN = "MODELFORGE_AGENT_ENROLLMENT_TOKEN"  # noqa: S105 - the name of a variable
CA = "MODELFORGE_AGENT_CA_CERT_PATH"
TLS_VERIFY = "MODELFORGE_AGENT_TLS_VERIFY"
ALLOW_INSECURE = "MODELFORGE_AGENT_ALLOW_INSECURE_TLS"
PROXY = "MODELFORGE_AGENT_PROXY"
QUARANTINE_MAX_BYTES = "MODELFORGE_AGENT_QUARANTINE_MAX_BYTES"
RUN_DIR = "MODELFORGE_AGENT_RUN_DIR"
DEFAULT_RUN_DIR = "/tmp/modelforge-agent"  # noqa: S108 - made 0700 and checked for its owner


class ConfigError(Exception):
    """All that is wrong with the configuration, told at once; the process ends with exit code 78."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


@dataclass(frozen=True, kw_only=True)
class Link:
    """How to reach the control plane, and whom to believe on the way."""

    url: str  # without a trailing slash
    tls_verify: bool = True
    ca_file: Path | None = None  # trust only this; None: the system's store
    proxy: str | None = field(default=None, repr=False)  # may hold a password
    timeout: timedelta = timedelta(seconds=20)

    @property
    def parts(self) -> SplitResult:
        """The address in its parts."""
        return urlsplit(self.url)

    @property
    def encrypted(self) -> bool:
        """Whether TLS is spoken at all."""
        return self.parts.scheme == "https"

    @property
    def loopback(self) -> bool:
        """Whether the control plane runs on this very machine."""
        return is_loopback(self.parts.hostname or "")

    @property
    def verified(self) -> bool:
        """False where anybody on the way could read the credential: told as a fact of this node."""
        return self.loopback or (self.encrypted and self.tls_verify)

    @property
    def ca(self) -> Literal["system", "file", "none"]:
        """Whom the agent believes, as a fact of this node."""
        if not self.encrypted or not self.tls_verify:
            return "none"
        return "file" if self.ca_file else "system"


@dataclass(frozen=True, kw_only=True)
class Config:
    """Everything that the operator decided."""

    link: Link
    token: Secret | None
    hub: Hub
    bandwidth: Bandwidth
    display_name: str
    hostname: str | None  # None: as the operating system says
    state_dir: Path
    hf_cache_dir: Path
    artifact_dir: Path
    quarantine_dir: Path
    quarantine_max_files: int
    quarantine_max_bytes: int
    run_dir: Path
    allow_ephemeral_state: bool
    facts_interval: timedelta
    nvml_timeout: timedelta
    park: timedelta  # the first wait after a refusal that only a person can mend; it doubles
    log_level: str
    log_format: str
    warnings: list[str]


def load(environ: MutableMapping[str, str], *, need_control_plane: bool = True) -> Config:
    """Read and check all variables, taking the secrets out of ``environ``; ConfigError tells every fault at once.

    Commands that never speak to the control plane pass ``need_control_plane=False``.
    """
    read = Variables(environ)
    token, hub_token = read.secret(TOKEN), read.secret(hub.TOKEN)
    if hub_token is not None:
        logs.hide(hub_token.reveal())
    unknown = read.unknown()
    warnings = [f"These variables mean nothing to the agent: {', '.join(unknown)}."] if unknown else []
    quarantine = read.text(QUARANTINE_MAX_BYTES, "50GB")
    config = Config(
        link=_link(read, environ, needed=need_control_plane),
        token=token,
        hub=hub.read(read, environ, hub_token),
        bandwidth=bandwidth.read(read),
        display_name=read.text("MODELFORGE_AGENT_DISPLAY_NAME"),
        hostname=read.text("MODELFORGE_AGENT_HOSTNAME") or None,
        state_dir=read.folder("MODELFORGE_AGENT_STATE_DIR", "/data/state"),
        hf_cache_dir=read.folder("MODELFORGE_AGENT_HF_CACHE_DIR", "/data/hf-cache"),
        artifact_dir=read.folder("MODELFORGE_AGENT_ARTIFACT_DIR", "/data/artifacts"),
        quarantine_dir=read.folder("MODELFORGE_AGENT_QUARANTINE_DIR", "/data/quarantine"),
        quarantine_max_files=read.count("MODELFORGE_AGENT_QUARANTINE_MAX_FILES", 100, low=0, high=100_000),
        quarantine_max_bytes=read.size(QUARANTINE_MAX_BYTES, quarantine, low=0, high=2**60),
        run_dir=read.folder(RUN_DIR, DEFAULT_RUN_DIR),
        allow_ephemeral_state=read.flag("MODELFORGE_AGENT_ALLOW_EPHEMERAL_STATE", default=False),
        facts_interval=read.duration("MODELFORGE_AGENT_FACTS_INTERVAL", 300, low=1, high=86400),
        nvml_timeout=read.duration("MODELFORGE_AGENT_NVML_TIMEOUT", 10, low=0.1, high=300),
        park=read.duration("MODELFORGE_AGENT_PARK_SECONDS", 30, low=1, high=900),
        log_level=read.choice("MODELFORGE_AGENT_LOG_LEVEL", "info", ("debug", "info", "warning", "error")),
        log_format=read.choice("MODELFORGE_AGENT_LOG_FORMAT", "auto", ("auto", "json", "text")),
        warnings=warnings + hub.unheard(environ, hub_token),
    )
    if read.faults:
        raise ConfigError(read.faults)
    return config


def _link(read: Variables, environ: MutableMapping[str, str], *, needed: bool) -> Link:
    url = _url(read, needed=needed)
    link = Link(
        url=url,
        tls_verify=read.flag(TLS_VERIFY, default=True),
        ca_file=addresses.ca_file(read, CA),
        timeout=read.duration("MODELFORGE_AGENT_REQUEST_TIMEOUT", 20, low=0.5, high=40),
        proxy=addresses.proxy(read, environ, url, PROXY) if url else None,
    )
    allowed = read.flag(ALLOW_INSECURE, default=False)
    if url and not link.verified and not allowed:
        if link.encrypted:
            fix = f"{TLS_VERIFY}=false is for a control plane on this machine only. Set {CA} to the public certificate "
            read.fault(URL, f"is not on this machine, and {fix}of the CA that signed its certificate instead.")
        else:
            read.fault(URL, "starts with http://, which would send the credential in clear. Use https://.")
    return link


def _url(read: Variables, *, needed: bool) -> str:
    url = read.text(URL, longest=2048).rstrip("/")
    if not url:
        if needed:
            read.fault(URL, "is missing. Set it to the control plane's address, such as https://modelforge.example.")
        return ""
    try:
        parts = urlsplit(url)
        port_ok = parts.port is None or parts.port > 0
    except ValueError:
        read.fault(URL, "is no address. Write it as https://modelforge.example or https://modelforge.example:8443.")
        return ""
    if parts.scheme not in ("https", "http") or not parts.hostname or not port_ok:
        read.fault(URL, "must start with https:// and name a host, such as https://modelforge.example.")
    elif parts.username is not None or parts.password is not None:
        read.fault(URL, "holds a user name or password. Leave them away; the agent has a credential of its own.")
    elif parts.query or parts.fragment:
        read.fault(URL, "holds a query or a fragment. Leave away everything from the ? or # on.")
    elif f"{parts.path}/".find(f"{API}/") >= 0:
        read.fault(URL, f"holds the path of the API. Leave away {API} and all behind it.")
    else:
        return url
    return ""
