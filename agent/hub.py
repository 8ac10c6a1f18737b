"""How the agent reaches the Hugging Face Hub, and with whose word: variables of its own beside the control plane's."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from agent import addresses
from agent.variables import Secret, Variables

ENDPOINT = "HF_ENDPOINT"
TOKEN = "MODELFORGE_HF_TOKEN"  # noqa: S105 - the name of a variable
CA = "MODELFORGE_AGENT_HUB_CA_CERT_PATH"
PROXY = "MODELFORGE_AGENT_HUB_PROXY"
DEFAULT_ENDPOINT = "https://huggingface.co"
_GRAPHIC = re.compile(r"[!-~]+")
_LIBRARYS_OWN = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")


@dataclass(frozen=True, kw_only=True)
class Hub:
    """Where models come from, and whom to believe on the way."""

    hf_endpoint: str = DEFAULT_ENDPOINT  # without a trailing slash; http:// only on this very machine
    hf_token: Secret | None = None  # for gated and private repositories; the control plane never sees it
    hub_ca_file: Path | None = None  # trust only this; None: the system's store
    hub_proxy: str | None = field(default=None, repr=False)  # may hold a password
    hub_no_proxy: str = ""  # hosts that the environment's proxy is not for: files may lie elsewhere than the Hub itself


def read(variables: Variables, environ: Mapping[str, str], token: Secret | None) -> Hub:
    """The Hub as the environment describes it; faults land in ``variables``."""
    endpoint = _endpoint(variables)
    if token is not None and not _GRAPHIC.fullmatch(token.reveal()):
        variables.fault(token.source or TOKEN, "holds blanks or other than printable ASCII. Copy the token whole.")
    own = variables.text(PROXY, longest=2048)
    return Hub(
        hf_endpoint=endpoint,
        hf_token=token,
        hub_ca_file=addresses.ca_file(variables, CA),
        hub_proxy=addresses.proxy(variables, environ, endpoint, PROXY),
        hub_no_proxy="" if own else addresses.no_proxy(environ),
    )


def unheard(environ: Mapping[str, str], token: Secret | None) -> list[str]:
    """Warnings of tokens that were set for the Hub's own library, which this agent does not read."""
    if token is not None:
        return []
    return [
        f"{name} is not read; set {TOKEN} (or {TOKEN}_FILE) instead." for name in _LIBRARYS_OWN if environ.get(name)
    ]


def _endpoint(variables: Variables) -> str:
    url = variables.text(ENDPOINT, DEFAULT_ENDPOINT, longest=2048).rstrip("/")
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("https", "http") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        variables.fault(ENDPOINT, "is no address. Write it as https://huggingface.co or https://mirror.example:8443.")
        return DEFAULT_ENDPOINT
    if not usable:
        variables.fault(ENDPOINT, "must start with https:// and name a host, such as https://huggingface.co.")
    elif parts.username is not None or parts.password is not None:
        variables.fault(ENDPOINT, f"holds a user name or password. Leave them away; a token goes into {TOKEN}.")
    elif parts.query or parts.fragment:
        variables.fault(ENDPOINT, "holds a query or a fragment. Leave away everything from the ? or # on.")
    elif parts.scheme == "http" and not addresses.is_loopback(parts.hostname or ""):
        variables.fault(ENDPOINT, "starts with http://, which would send the token in clear. Use https://.")
    else:
        return url
    return DEFAULT_ENDPOINT
