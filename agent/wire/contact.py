"""How a node joins, beats, renews its credential and stops."""

from typing import Annotated
from uuid import UUID

from msgspec import Meta, Struct

from agent.wire.telemetry import Telemetry
from agent.wire.values import Count, Instant, Name, Seconds, Version


class Enroll(Struct, frozen=True, kw_only=True):
    """Body of ``POST agent/enroll``; the one-time token travels as ``Authorization: Bearer mfe_...``."""

    node_id: UUID  # minted by the agent, kept in its state volume
    boot_id: UUID
    hostname: Name
    agent_version: Version
    display_name: Annotated[str, Meta(max_length=255)] = ""  # used where the invitation names none


class Enrolled(Struct, frozen=True, kw_only=True):
    """Answer to ``Enroll``: the node-scoped credential, told this once."""

    node_id: UUID
    credential: str
    display_name: str
    heartbeat_interval_seconds: Seconds


class Beat(Struct, frozen=True, kw_only=True):
    """Body of ``POST agent/heartbeat``: small and frequent."""

    boot_id: UUID  # new at every process start
    sequence: Count  # grows by one a beat within a boot id, from 1
    sent_at: Instant  # by the agent's clock: data for the skew, never for a decision
    agent_version: Version
    facts_digest: Annotated[str, Meta(max_length=64)] = ""  # of the facts that the agent holds; "" before the first
    telemetry: Telemetry | None = None  # sent when the last reply's telemetry interval has passed


class BeatReply(Struct, frozen=True, kw_only=True):
    """Answer to ``Beat``: what the node is told to do next."""

    heartbeat_interval_seconds: Seconds
    telemetry_interval_seconds: Seconds
    want_facts: bool = False
    renew_credential: bool = False
    work: bool = False  # something waits at agent/jobs/claim: a job, or a storage root to look at


class FactsReply(Struct, frozen=True, kw_only=True):
    """Answer to ``Facts``."""

    facts_digest: str
    changed: bool


class CredentialReply(Struct, frozen=True, kw_only=True):
    """Answer to ``POST agent/credential`` (empty body): the new credential, told this once."""

    credential: str
    old_dies_at: Instant


class Goodbye(Struct, frozen=True, kw_only=True):
    """Body of ``POST agent/goodbye``: a planned stop reads as one."""

    boot_id: UUID
    reason: Annotated[str, Meta(max_length=128)] = "stopped"
