"""Puts the agent's wire messages, which are msgspec types, into the OpenAPI schema beside DRF's own."""

from typing import Any

import msgspec
from django.urls import URLPattern, URLResolver, get_resolver

from agent import wire
from agent.protocol import VERSION_HEADER
from nodes.agent_view import AgentView

REF = "#/components/schemas/{name}"

ANSWERS: dict[type[msgspec.Struct], type[msgspec.Struct] | None] = {
    wire.Enroll: wire.Enrolled,
    wire.Beat: wire.BeatReply,
    wire.Facts: wire.FactsReply,
    wire.Goodbye: None,
}


def add_wire_types(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """drf-spectacular's hook: each agent endpoint with its types, and one error type for all."""
    views = dict(_agent_views())
    types = {wire.Problem, wire.CredentialReply, *ANSWERS, *(answer for answer in ANSWERS.values() if answer)}
    _, components = msgspec.json.schema_components(types, ref_template=REF)
    result["components"].setdefault("schemas", {}).update(components)
    for path, operations in result["paths"].items():
        for operation in operations.values():
            if path in views:
                _describe(operation, views[path])
            operation["responses"]["default"] = {
                "description": "Refused, with a stable `code`",
                "content": {"application/problem+json": {"schema": _ref(wire.Problem)}},
            }
    return result


def _agent_views() -> list[tuple[str, type[AgentView]]]:
    return [(path, view) for path, view in _views(get_resolver(), "/") if issubclass(view, AgentView)]


def _views(resolver: URLResolver, prefix: str) -> list[tuple[str, type]]:
    found: list[tuple[str, type]] = []
    for entry in resolver.url_patterns:
        if isinstance(entry, URLResolver):
            found += _views(entry, prefix + str(entry.pattern))
        elif isinstance(entry, URLPattern) and (view := getattr(entry.callback, "view_class", None)):
            found.append((prefix + str(entry.pattern), view))
    return found


def _ref(type: type[msgspec.Struct]) -> dict[str, str]:
    return {"$ref": REF.format(name=type.__name__)}


def _describe(operation: dict[str, Any], view: type[AgentView]) -> None:
    message = view.message
    answer = ANSWERS[message] if message else wire.CredentialReply
    operation["tags"] = ["agent"]
    operation["security"] = [{"nodeCredential": []}]
    operation["parameters"] = [
        {"in": "header", "name": VERSION_HEADER, "required": True, "schema": {"type": "string", "enum": ["1"]}}
    ]
    if message:
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": _ref(message)}}}
    operation["responses"] = (
        {"200": {"description": "Heard", "content": {"application/json": {"schema": _ref(answer)}}}}
        if answer
        else {"204": {"description": "Heard"}}
    )
