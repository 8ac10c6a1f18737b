"""Puts the agent's endpoints, whose messages are msgspec types, into the OpenAPI schema beside DRF's own."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from django.urls import URLPattern, URLResolver, get_resolver

from agent import wire
from agent.protocol import SPOKEN, VERSION_HEADER
from nodes.agent_view import AgentView

REF = "#/components/schemas/{name}"

ANSWERS: dict[type[msgspec.Struct], type[msgspec.Struct] | None] = {
    wire.Enroll: wire.Enrolled,
    wire.Beat: wire.BeatReply,
    wire.Facts: wire.FactsReply,
    wire.Goodbye: None,
    wire.Claim: wire.ClaimReply,
    wire.Progress: wire.ProgressReply,
    wire.Result: wire.ResultReply,
}
"""What each message is answered with; the endpoint without a message answers ``CredentialReply``."""

_IN_ROUTE = re.compile(r"<\w+:(\w+)>")
"""A part of an address, as Django's routes write it."""

BEARER = "nodeCredential"


def add_wire_types(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """drf-spectacular's hook: the agent's endpoints with their types, and one error type for every endpoint."""
    answers = [answer for answer in ANSWERS.values() if answer is not None]
    types = [wire.Problem, wire.CredentialReply, *ANSWERS, *answers]
    components = msgspec.json.schema_components(types, ref_template=REF)[1]
    schemas = result["components"].setdefault("schemas", {})
    schemas.update(components)
    result["components"].setdefault("securitySchemes", {})[BEARER] = {
        "type": "http",
        "scheme": "bearer",
        "description": "The node's credential (mfn_...); to enroll, the one-time token (mfe_...).",
    }
    for route, view in _agent_views(get_resolver(), "/"):
        path = _IN_ROUTE.sub(r"{\1}", route)
        result["paths"][path] = {view.method.lower(): _operation(path, view)}
    for operations in result["paths"].values():
        for operation in operations.values():
            operation["responses"]["default"] = {
                "description": "Refused, with a stable `code`",
                "content": {"application/problem+json": {"schema": _ref(wire.Problem)}},
            }
    result["paths"] = dict(sorted(result["paths"].items()))
    return result


def _agent_views(resolver: URLResolver, prefix: str) -> Iterator[tuple[str, type[AgentView]]]:
    for entry in resolver.url_patterns:
        path = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from _agent_views(entry, path)
        elif isinstance(entry, URLPattern):
            view = getattr(entry.callback, "view_class", None)
            if view is not None and issubclass(view, AgentView):
                yield path, view


def _ref(type: type[msgspec.Struct]) -> dict[str, str]:
    return {"$ref": REF.format(name=type.__name__)}


def _operation(path: str, view: type[AgentView]) -> dict[str, Any]:
    message = view.message
    answer = ANSWERS[message] if message else wire.CredentialReply
    operation: dict[str, Any] = {
        "operationId": "agent_" + path.rpartition("/")[2],
        "description": (view.__doc__ or "").strip(),
        "tags": ["agent"],
        "security": [{BEARER: []}],
        "parameters": [
            {
                "in": "header",
                "name": VERSION_HEADER,
                "required": True,
                "schema": {"type": "string", "enum": [str(version) for version in SPOKEN]},
            },
            *[
                {"in": "path", "name": name, "required": True, "schema": {"type": "string", "format": "uuid"}}
                for name in re.findall(r"{(\w+)}", path)
            ],
        ],
    }
    if message:
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": _ref(message)}}}
    if answer:
        heard: dict[str, Any] = {"description": "Heard", "content": {"application/json": {"schema": _ref(answer)}}}
        operation["responses"] = {"200": heard}
    else:
        operation["responses"] = {"204": {"description": "Heard"}}
    return operation
