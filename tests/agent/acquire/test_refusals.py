"""Each refusal of the Hub has one meaning for the person who ordered, and says what to do."""

from datetime import UTC, datetime, timedelta

import pytest

from agent.acquire.hub import refusals
from agent.acquire.hub.refusals import Fault
from agent.acquire.hub.source import Source
from agent.variables import Secret

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
NONE, SOME = Source(), Source(token=Secret("hf_secret"))


def meant(source: Source, **said: object) -> tuple[str, str]:
    """The code and the words for a refusal."""
    failed = refusals.failure(
        Fault(kind="refused", **said),  # type: ignore[arg-type]
        source=source,
        repo_id="org/model",
        revision="main",
        now=NOW,
    )
    return failed.code, failed.detail


@pytest.mark.parametrize(
    ("source", "status", "error", "message", "code", "says"),
    [
        (NONE, 401, "GatedRepo", "", "gated_no_token", "MODELFORGE_HF_TOKEN"),
        (NONE, 403, "GatedRepo", "", "gated_no_token", "huggingface.co/org/model"),
        (SOME, 403, "GatedRepo", "", "gated_not_accepted", "huggingface.co/org/model"),
        (SOME, 401, "GatedRepo", "", "token_invalid", "MODELFORGE_HF_TOKEN"),
        (SOME, 401, "", "Invalid credentials in Authorization header", "token_invalid", "new one"),
        (SOME, 401, "RepoNotFound", "Invalid credentials in Authorization header", "token_invalid", "new one"),
        (SOME, 401, "", "", "token_invalid", "new one"),
        (SOME, 403, "", "", "token_invalid", "read rights"),
        (NONE, 401, "RepoNotFound", "", "not_found", "needs a MODELFORGE_HF_TOKEN"),
        (NONE, 401, "", "", "not_found", "needs a MODELFORGE_HF_TOKEN"),
        (SOME, 404, "RepoNotFound", "", "not_found", "may not see it"),
        (SOME, 401, "RepoNotFound", "", "not_found", "may not see it"),
        (NONE, 404, "", "", "not_found", "no repository"),
        (NONE, 404, "RevisionNotFound", "", "not_found", "no revision 'main'"),
        (SOME, 403, "", "Access to this resource is disabled.", "not_found", "disabled"),
        (NONE, 403, "", "", "not_found", "403"),
        (NONE, 500, "", "", "source_unavailable", "500"),
        (SOME, 503, "", "", "source_unavailable", "503"),
        (NONE, 418, "", "", "source_unavailable", "418"),
    ],
)
def test_a_refusal_is_told_by_its_meaning_with_a_remedy(
    source: Source, status: int, error: str, message: str, code: str, says: str
) -> None:
    found, detail = meant(source, status=status, error=error, message=message)
    assert found == code
    assert says in detail
    assert "hf_secret" not in detail


@pytest.mark.parametrize(
    ("retry_after", "rate_limit", "seconds"),
    [
        ("7", "", 7),
        ("7", '"api";r=0;t=55', 7),
        ("", '"api";r=0;t=55', 55),
        ("", '"api" ; r = 0 ; t = 55', 55),
        ("Wed, 04 Mar 2026 05:08:07 GMT", "", 120),
        ("Wed, 04 Mar 2026 05:05:00 GMT", "", 0),
        ("soon", "", 60),
        ("", "", 60),
        ("999999999", "", 3600),
        ("", '"api";r=0;t=999999999', 3600),
    ],
)
def test_how_long_to_wait_is_read_from_either_header(retry_after: str, rate_limit: str, seconds: int) -> None:
    assert refusals.wait(retry_after, rate_limit, NOW) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("untrusted", "MODELFORGE_AGENT_HUB_CA_CERT_PATH"),
        ("tls", "HF_ENDPOINT"),
        ("unresolved", "DNS"),
        ("unreached", "MODELFORGE_AGENT_HUB_PROXY"),
        ("silent", "silent"),
        ("astray", "redirects"),
        ("not_json", "is it a Hub"),
        ("broken", "installed badly"),
    ],
)
def test_a_source_that_cannot_be_asked_says_what_to_check(kind: refusals.Kind, says: str) -> None:
    fault = Fault(kind=kind, said="the reason")
    failed = refusals.failure(fault, source=NONE, repo_id="org/model", revision="main", now=NOW)
    assert failed.code == "source_unavailable"
    assert says in failed.detail
