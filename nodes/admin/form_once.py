"""A form that makes a secret works once: sent again, it says what it made, and neither makes another nor tells it."""

import secrets
from dataclasses import dataclass
from datetime import datetime

from django.core.signing import BadSignature, TimestampSigner
from django.http import HttpRequest

from agent.protocol import Code
from nodes.callers import Caller, Refused
from nodes.idempotency import REMEMBERED_FOR
from nodes.models import IdempotentAnswer

FIELD = "form_nonce"


@dataclass(frozen=True, slots=True)
class Made:
    """What a form made: its id, what to call it, and where it stands."""

    id: str
    name: str
    link: str


def nonce(request: HttpRequest) -> str:
    """For the form's hidden field: random, and signed for this page and person."""
    return _signer(request).sign(secrets.token_urlsafe(18))


def claim(request: HttpRequest, *, by: Caller, now: datetime) -> IdempotentAnswer | Made:
    """Within the transaction of the act: the place to note what is made, or what this form has made already.

    Raises:
        Refused: ``invalid`` where the form carries no nonce of its own, or one older than answers are remembered.
    """
    key = request.POST.get(FIELD, "")
    try:
        _signer(request).unsign(key, max_age=REMEMBERED_FOR)
    except BadSignature:
        detail = "This form was open for too long, or was not made by this page. Nothing was made; send it once more."
        raise Refused(Code.INVALID, detail) from None
    place = {"caller": f"{by.kind}:{by.id}"[:128], "path": request.path[:255], "key": key[:128]}
    answer, first = IdempotentAnswer.objects.get_or_create(
        **place, defaults={"body_digest": "", "status": 0, "at": now}
    )
    return answer if first else Made(**(answer.answer or {"id": answer.created, "name": "", "link": ""}))


def note(answer: IdempotentAnswer, made: Made) -> None:
    """Remember what was made; never its secret."""
    answer.status, answer.created = 201, made.id
    answer.answer = {"id": made.id, "name": made.name, "link": made.link}
    answer.save(update_fields=["status", "created", "answer"])


def _signer(request: HttpRequest) -> TimestampSigner:
    return TimestampSigner(salt=f"modelforge.form:{request.user.pk}:{request.path}")
