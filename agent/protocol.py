"""The constants that agent and control plane must agree on: versions, header names, paths, limits and error codes.

Spoken by: the agent (this package) and the control plane, which imports this module and ``agent.wire`` and nothing
else of the agent. Described for readers in docs/protocol.md.
"""

from enum import StrEnum

VERSION = 1
"""The one protocol version that this code speaks; an agent never downgrades silently."""

SPOKEN = (1,)
"""The versions that this control plane answers."""

VERSION_HEADER = "X-ModelForge-Protocol"
REQUEST_ID_HEADER = "X-Request-ID"

API = "/api/v1"
ENROLL = f"{API}/agent/enroll"
HEARTBEAT = f"{API}/agent/heartbeat"
FACTS = f"{API}/agent/facts"
CREDENTIAL = f"{API}/agent/credential"
GOODBYE = f"{API}/agent/goodbye"
JOBS = f"{API}/agent/jobs"
CLAIM = f"{JOBS}/claim"

# Body limits in bytes, checked before a body is parsed.
MAX_ENROLL_BYTES = 16 * 1024
MAX_BEAT_BYTES = 256 * 1024
MAX_FACTS_BYTES = 1024 * 1024
MAX_SMALL_BYTES = 4 * 1024
MAX_CLAIM_BYTES = 256 * 1024
MAX_PROGRESS_BYTES = 4 * 1024
MAX_RESULT_BYTES = 1024 * 1024

STALE_AFTER_INTERVALS = 3
OFFLINE_AFTER_INTERVALS = 6
"""A node is stale, then offline, after so many of the intervals that *it* was told."""


class Code(StrEnum):
    """The stable ``code`` of every problem+json answer; ``modelforge.errors`` gives each its HTTP status."""

    MALFORMED = "malformed"
    INVALID = "invalid"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    NOT_ACCEPTABLE = "not_acceptable"
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type"
    BODY_TOO_LARGE = "body_too_large"
    LENGTH_REQUIRED = "length_required"
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    CREDENTIAL_UNKNOWN = "credential_unknown"
    CREDENTIAL_REVOKED = "credential_revoked"
    CREDENTIAL_SUPERSEDED = "credential_superseded"
    API_KEY_EXPIRED = "api_key_expired"
    API_KEY_REVOKED = "api_key_revoked"
    NODE_DISABLED = "node_disabled"
    NODE_RETIRED = "node_retired"
    IDENTITY_CONFLICT = "identity_conflict"
    TOKEN_UNKNOWN = "token_unknown"
    TOKEN_USED = "token_used"
    TOKEN_EXPIRED = "token_expired"
    TOKEN_REVOKED = "token_revoked"
    NODE_HAS_CREDENTIAL = "node_has_credential"
    PROTOCOL_UNSUPPORTED = "protocol_unsupported"
    STATE_CONFLICT = "state_conflict"
    LEASE_LOST = "lease_lost"
    JOB_TYPE_UNSUPPORTED = "job_type_unsupported"
    ROOT_UNVERIFIED = "root_unverified"
    IDEMPOTENCY_MISMATCH = "idempotency_mismatch"
    SECRET_NOT_REPLAYED = "secret_not_replayed"
    PRECONDITION_FAILED = "precondition_failed"
    PRECONDITION_REQUIRED = "precondition_required"
    THROTTLED = "throttled"
    UNAVAILABLE = "unavailable"
    INTERNAL = "internal"


def progress(job_id: object) -> str:
    """Where a running job's progress is told."""
    return f"{JOBS}/{job_id}/progress"


def result(job_id: object) -> str:
    """Where a job's result is told."""
    return f"{JOBS}/{job_id}/result"


def parse_version(header: str | None) -> int | None:
    """The protocol version that a request names, or None when the header is absent or no plain number."""
    if header is None or not header.isascii() or not header.isdigit() or len(header) > 6:
        return None
    return int(header)
