"""Named API keys for scripts: made with a role and an end, revoked at once."""

from datetime import datetime

from django.db import IntegrityError, transaction

from agent.protocol import Code
from agent.wire import FieldError
from enrollment import secrets
from enrollment.models import ApiKey
from nodes import labels
from nodes.audit import Subject, record
from nodes.callers import Caller, Refused, require_operator
from nodes.event_types import EventType


def create(
    name: str, role: ApiKey.Role, expires_at: datetime | None, *, by: Caller, now: datetime
) -> tuple[ApiKey, str]:
    """Make a key; its text is told once.

    Raises:
        Refused: ``invalid`` name or end, ``state_conflict`` where a live key has the name, ``forbidden``.
    """
    require_operator(by)
    fault = labels.text_fault(name, "name", least=1, most=255)
    if fault is None and expires_at is not None and expires_at <= now:
        fault = FieldError(field="expires_at", detail="Give an instant that is still to come, or none.")
    if fault is not None:
        raise Refused(Code.INVALID, f"{fault.field}: {fault.detail}", errors=[fault])
    minted = secrets.mint(secrets.Kind.API_KEY)
    try:
        with transaction.atomic():
            key = ApiKey.objects.create(
                name=name.strip(),
                role=role,
                created_at=now,
                created_by=by.label[:255],
                expires_at=expires_at,
                handle=minted.handle,
                digest=minted.digest,
                last_four=minted.last_four,
            )
            details = {"role": role.value, "handle": key.handle, "last_four": key.last_four, "expires_at": expires_at}
            record(EventType.API_KEY_CREATED, by=by, about=_subject(key), at=now, **details)
    except IntegrityError as fault_of_name:
        detail = f"A key named {name.strip()!r} is in use; revoke it first, or take another name."
        raise Refused(Code.STATE_CONFLICT, detail) from fault_of_name
    return key, minted.text


def revoke(key: ApiKey, *, by: Caller, now: datetime) -> ApiKey:
    """End a key at once; one that was revoked already stays so, and its name is free again."""
    require_operator(by)
    with transaction.atomic():
        key = ApiKey.objects.select_for_update().get(pk=key.pk)
        if key.revoked_at is None:
            key.revoked_at = now
            key.save(update_fields=["revoked_at"])
            details = {"handle": key.handle, "last_four": key.last_four}
            record(EventType.API_KEY_REVOKED, by=by, about=_subject(key), at=now, **details)
    return key


def _subject(key: ApiKey) -> Subject:
    return Subject("api_key", str(key.pk), key.name)
