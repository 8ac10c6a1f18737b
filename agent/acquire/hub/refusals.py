"""What the Hub's refusals mean to the person who ordered, and what to do about each."""

import re
from datetime import datetime, timedelta
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from agent.acquire.hub.source import Source
from agent.acquire.terms import Failed
from agent.backoff import parse_retry_after

TOKEN = "MODELFORGE_HF_TOKEN"  # noqa: S105  the variable's name
CA = "MODELFORGE_AGENT_HUB_CA_CERT_PATH"
PROXY = "MODELFORGE_AGENT_HUB_PROXY"
ENDPOINT = "HF_ENDPOINT"

_RESET = re.compile(r";\s*t\s*=\s*(\d{1,9})")  # of a RateLimit header: "api";r=0;t=55
_UNTOLD = timedelta(seconds=60)  # the wait where a 429 names none
_LONGEST = timedelta(hours=1)

Kind = Literal[
    "refused",
    "unreached",
    "unresolved",
    "untrusted",
    "tls",
    "silent",
    "astray",
    "too_large",
    "not_json",
    "malformed",
    "broken",
]


class Fault(msgspec.Struct, frozen=True):
    """Why the asking process has no listing."""

    kind: Kind
    said: str = ""
    status: int = 0
    error: str = ""  # the Hub's X-Error-Code
    message: str = ""  # its X-Error-Message: only compared, never shown
    retry_after: str = ""
    rate_limit: str = ""
    gated: bool = False


def failure(fault: Fault, *, source: Source, repo_id: str, revision: str, now: datetime) -> Failed:
    """The fault in the words of the wire."""
    if fault.kind == "refused":
        return _refused(fault, source, repo_id, revision, now)
    if fault.kind == "malformed":
        if fault.gated:
            return gated(source, repo_id)
        return Failed("manifest_refused", f"The Hub's listing of {repo_id} is not as it should be ({fault.said}).")
    if fault.kind == "too_large":
        return Failed("manifest_refused", f"The Hub's listing of {repo_id} is larger than anything that is read.")
    return Failed("source_unavailable", _unavailable(fault, _host(source)))


def gated(source: Source, repo_id: str) -> Failed:
    """Access must be asked for on the Hub, by the one whose token it is."""
    page = f"{source.endpoint}/{repo_id}"
    if source.token is None:
        remedy = f"Accept its terms at {page}, and set {TOKEN} on the agent to a token of that account."
        return Failed("gated_no_token", f"{repo_id} is gated. {remedy}")
    remedy = f"Ask for it at {page}."
    return Failed("gated_not_accepted", f"{repo_id} is gated, and the account of {TOKEN} has no access. {remedy}")


def overdue(source: Source, waited: timedelta) -> str:
    """What to say of a Hub that did not finish its answer."""
    return f"{_host(source)} did not finish its answer within {waited.total_seconds():g} s."


def wait(retry_after: str, rate_limit: str, now: datetime) -> timedelta:
    """How long a 429 asks to wait: Retry-After in seconds or as a date, else what the RateLimit header counts down."""
    told = parse_retry_after(retry_after or None, now=now)
    if told is None and (reset := _RESET.search(rate_limit)):
        told = timedelta(seconds=int(reset[1]))
    return min(told, _LONGEST) if told is not None else _UNTOLD


def _refused(fault: Fault, source: Source, repo_id: str, revision: str, now: datetime) -> Failed:
    status, token = fault.status, source.token is not None
    if status == 429:
        pause = wait(fault.retry_after, fault.rate_limit, now)
        detail = f"{_host(source)} asks to wait {pause.total_seconds():.0f} s: too many requests from this address."
        return Failed("rate_limited", detail, retry_after=pause)
    if fault.error == "GatedRepo":
        # With a token that the Hub does not know, it cannot say whose access is missing.
        return _invalid(source) if status == 401 and token else gated(source, repo_id)
    if fault.error == "RevisionNotFound":
        return Failed("not_found", f"{repo_id} has no revision {revision!r}: name a branch, a tag or a full commit.")
    if status == 401 and token and (fault.error != "RepoNotFound" or fault.message.startswith("Invalid credentials")):
        return _invalid(source)
    if fault.error == "RepoNotFound" or status in (401, 404, 410):
        hint = "or its account may not see it" if token else f"or it is private and needs a {TOKEN}"
        return Failed("not_found", f"There is no repository {repo_id} on {_host(source)}, {hint}.")
    if status == 403:
        if token and fault.message != "Access to this resource is disabled.":
            return Failed("token_invalid", f"{_host(source)} forbids {repo_id} to this token: give it read rights.")
        return Failed("not_found", f"{_host(source)} forbids {repo_id} (403): the repository is private or disabled.")
    return Failed("source_unavailable", f"{_host(source)} answered {status}.")


def _invalid(source: Source) -> Failed:
    return Failed("token_invalid", f"{_host(source)} does not accept {TOKEN}: make a new one and set it on the agent.")


def _unavailable(fault: Fault, host: str) -> str:
    said = f" ({fault.said})" if fault.said else ""
    match fault.kind:
        case "untrusted":
            return f"The certificate of {host} is not trusted{said}. Set {CA} to the public certificate of its CA."
        case "tls":
            return f"{host} and the agent find no common TLS{said}. Check {ENDPOINT}, {PROXY} and what lies between."
        case "unresolved":
            return f"The name {host} is not known here{said}. Check {ENDPOINT} and this server's DNS, or set {PROXY}."
        case "broken":
            return f"The Hub's library cannot be loaded here{said}: this agent is installed badly."
        case "silent":
            return f"{host} was silent for too long."
        case "astray":
            return f"{host} redirects to an address that may not be asked. Check {ENDPOINT}."
        case "not_json":
            return f"{host} answered with something that is no listing: is it a Hub, or does a proxy stand between?"
        case _:
            return f"{host} is not reached{said}. Check {ENDPOINT} and the network, or set {PROXY}."


def _host(source: Source) -> str:
    return urlsplit(source.endpoint).netloc.rpartition("@")[2]
