"""Creating POSTs that may be sent twice: one ``Idempotency-Key``, one thing made, the same answer for a day.

::

    def post(self, request):
        by, now = caller_of(request), datetime.now(UTC)

        def make() -> Made:
            token, secret = admission.invite(..., by=by, now=now)
            return Made({"id": str(token.pk), "secret": secret}, created=str(token.pk), secret=True)

        return once(request, make, by=by, now=now)

``make`` runs inside the transaction that remembers the answer, so that exactly one of two at once makes something, and
a refusal raised in it is remembered by nobody. Without the header ``make`` simply runs, in a transaction.
"""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.encoders import JSONEncoder

from agent.protocol import Code
from agent.wire import FieldError
from nodes.callers import Caller, Refused
from nodes.models import IdempotentAnswer

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
REMEMBERED_FOR = timedelta(hours=24)
PARAMETER = OpenApiParameter(
    HEADER,
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="1 to 128 visible ASCII characters. The same key and body within 24 hours give the same answer.",
)
"""For ``@extend_schema(parameters=[idempotency.PARAMETER])``."""

_KEY = re.compile(r"[\x21-\x7e]{1,128}")


@dataclass(frozen=True, slots=True)
class Made:
    """What ``make`` made."""

    answer: Any  # the body to answer with: JSON values, dates, UUIDs
    created: str  # the id of what was made
    secret: bool = False  # the answer holds a secret: told once, never replayed, never cached
    status: int = 201


def once(request: Request, make: Callable[[], Made], *, by: Caller, now: datetime) -> Response:
    """Answer a creating POST, once per caller, path and key.

    Raises:
        Refused: ``invalid`` for a key out of shape, ``idempotency_mismatch`` for a key that came with another body,
            ``secret_not_replayed`` where the answer held a secret; and whatever ``make`` raises.
    """
    key = request.headers.get(HEADER)
    if key is None:
        request.data  # noqa: B018 - read before the transaction: whoever sends slowly must hold no lock
        with transaction.atomic():
            made = make()
        return _response(made)
    if not _KEY.fullmatch(key):
        detail = "Send 1 to 128 visible ASCII characters, for example a UUID."
        raise Refused(Code.INVALID, f"{HEADER}: {detail}", errors=[FieldError(field=HEADER, detail=detail)])
    place = {"caller": f"{by.kind}:{by.id}"[:128], "path": request.path[:255], "key": key}
    body = _digest(request.data)
    with transaction.atomic():
        IdempotentAnswer.objects.filter(**place, at__lte=now - REMEMBERED_FOR).delete()
        answer, first = IdempotentAnswer.objects.get_or_create(
            **place, defaults={"body_digest": body, "status": 0, "at": now}
        )
        if not first:
            return _replay(answer, body)
        made = make()
        answer.status, answer.created = made.status, made.created
        answer.answer = None if made.secret else json.loads(json.dumps(made.answer, cls=JSONEncoder))
        answer.save(update_fields=["status", "created", "answer"])
    return _response(made)


def _replay(answer: IdempotentAnswer, body: str) -> Response:
    if answer.body_digest != body:
        raise Refused(
            Code.IDEMPOTENCY_MISMATCH,
            f"This {HEADER} was used with another body within the last 24 hours; take a new key for a new request.",
        )
    if answer.answer is None:
        raise Refused(
            Code.SECRET_NOT_REPLAYED,
            f"This request made {answer.created} before; its secret was told once and is told to nobody again. "
            "If the answer was lost, revoke it and make another with a new key.",
            about={"created": answer.created},
        )
    return Response(answer.answer, status=answer.status, headers={REPLAYED: "true"})


def _response(made: Made) -> Response:
    return Response(made.answer, status=made.status, headers={"Cache-Control": "no-store"} if made.secret else None)


def _digest(body: Any) -> str:
    """SHA-256 (hex) of what the body says, however it was spaced and ordered."""
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def prune(*, now: datetime, batch: int = 1000, batches: int = 100) -> int:
    """Forget answers older than a day, in batches; how many went."""
    old = IdempotentAnswer.objects.filter(at__lte=now - REMEMBERED_FOR).order_by("at").values_list("pk", flat=True)
    forgotten = 0
    for _ in range(batches):
        gone, _kinds = IdempotentAnswer.objects.filter(pk__in=list(old[:batch])).delete()
        forgotten += gone
        if gone < batch:
            break
    return forgotten
