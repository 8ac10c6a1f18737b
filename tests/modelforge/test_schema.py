"""The OpenAPI schema says what the endpoints do: schemathesis asks all of them, and believes nothing else."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import schemathesis
from django.core import signals
from django.core.handlers.wsgi import WSGIHandler
from django.db import close_old_connections
from django.test import Client
from hypothesis import HealthCheck, Phase, settings
from schemathesis.config import SchemathesisConfig

from agent import protocol, wire
from tests.conftest import Enrolled
from tests.parts.start import OPERATOR_API_KEY

AGENT = [protocol.ENROLL, protocol.HEARTBEAT, protocol.FACTS, protocol.CREDENTIAL, protocol.GOODBYE]
PROBLEM = "application/problem+json"


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    """The schema as it is served."""
    answer = Client().get("/api/schema", headers={"Accept": "application/vnd.oai.openapi+json"})
    assert answer.status_code == 200
    found: dict[str, Any] = json.loads(answer.content)
    return found


def test_the_agents_endpoints_and_their_messages_are_in_it(told: dict[str, Any]) -> None:
    assert set(AGENT) <= set(told["paths"])
    beat = told["paths"][protocol.HEARTBEAT]["post"]
    assert beat["requestBody"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Beat"}
    assert beat["responses"]["200"]["content"]["application/json"]["schema"] == {
        "$ref": "#/components/schemas/BeatReply"
    }
    assert set(told["components"]["schemas"]["Beat"]["properties"]) == set(wire.Beat.__struct_fields__)


def test_every_operation_names_the_one_kind_of_error(told: dict[str, Any]) -> None:
    for operations in told["paths"].values():
        for operation in operations.values():
            error = operation["responses"]["default"]["content"][PROBLEM]["schema"]
            assert error == {"$ref": "#/components/schemas/Problem"}


def test_every_reference_leads_somewhere(told: dict[str, Any]) -> None:
    def references(part: Any) -> list[str]:
        if isinstance(part, dict):
            own = [part["$ref"]] if isinstance(part.get("$ref"), str) else []
            return own + [found for inner in part.values() for found in references(inner)]
        return [found for inner in part for found in references(inner)] if isinstance(part, list) else []

    known = {f"#/components/schemas/{name}" for name in told["components"]["schemas"]}
    assert set(references(told)) <= known


def test_the_page_that_shows_it_needs_nothing_from_elsewhere() -> None:
    answer = Client().get("/api/docs")
    assert answer.status_code == 200
    assert "https://" not in answer.content.decode()


class InOneTransaction(WSGIHandler):
    """The application as the web server loads it; between requests the test's own connection stays open."""

    def __call__(self, environ: Any, start_response: Any) -> Any:
        signals.request_started.disconnect(close_old_connections)
        signals.request_finished.disconnect(close_old_connections)
        try:
            answer = super().__call__(environ, start_response)
            body = b"".join(answer)
            answer.close()
        finally:
            signals.request_started.connect(close_old_connections)
            signals.request_finished.connect(close_old_connections)
        return [body]


def _config() -> SchemathesisConfig:
    return SchemathesisConfig.from_dict({"generation": {"mode": "all"}, "output": {"sanitization": {"enabled": False}}})


schema = schemathesis.openapi.from_wsgi("/api/schema?format=json", InOneTransaction(), config=_config())

CHECKS = [
    schemathesis.checks.not_a_server_error,
    schemathesis.checks.response_schema_conformance,
    schemathesis.checks.content_type_conformance,
]


@schema.exclude(path_regex="^/api/v1/agent/").parametrize()
@settings(
    max_examples=5,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@pytest.mark.django_db
@pytest.mark.timeout(300)
def test_an_operator_is_answered_as_the_schema_says(case: schemathesis.Case[Any]) -> None:
    case.call_and_validate(headers={"X-ModelForge-Admin-Token": OPERATOR_API_KEY}, checks=CHECKS)


@schema.include(path_regex="^/api/v1/agent/").exclude(path_regex="heartbeat$|facts$").parametrize()
@settings(
    max_examples=5,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@pytest.mark.timeout(300)
def test_a_node_is_answered_as_the_schema_says(
    case: schemathesis.Case[Any], enrolled_node: Callable[..., Enrolled]
) -> None:
    """Beats and facts are too deep to invent in seconds; tests/agent and tests/nodes send real ones."""
    headers = enrolled_node(f"server-{id(case)}").headers
    case.call_and_validate(headers=headers, checks=CHECKS)
