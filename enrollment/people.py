"""The people who log in: operators, who act, and auditors, who read."""

import hashlib
from collections.abc import Iterator, Mapping
from datetime import datetime

from django.contrib.auth.models import Group, User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.http import HttpRequest

from agent.protocol import Code
from agent.wire import FieldError
from nodes.audit import Subject, record
from nodes.callers import AUDITORS, OPERATORS, Caller, Refused, Role, require_operator
from nodes.event_types import EventType

GROUPS = {Role.OPERATOR: OPERATORS, Role.AUDITOR: AUDITORS}


def create(name: str, password: str, role: Role, *, by: Caller, now: datetime) -> User:
    """Make an account that may open the admin pages, as an operator or an auditor.

    Raises:
        Refused: ``invalid`` name or password, ``state_conflict`` where the name is taken, ``forbidden``.
    """
    require_operator(by)
    user = User(username=name, is_staff=True, date_joined=now)
    faults = list(_faults(user, password))
    if faults:
        raise Refused(Code.INVALID, "; ".join(f"{fault.field}: {fault.detail}" for fault in faults), errors=faults)
    user.set_password(password)
    try:
        with transaction.atomic():
            user.save()
            user.groups.add(Group.objects.get_or_create(name=GROUPS[role])[0])
            about = Subject("person", str(user.pk), user.get_username())
            record(EventType.OPERATOR_CREATED, by=by, about=about, at=now, role=role.value)
    except IntegrityError as fault:
        raise Refused(Code.STATE_CONFLICT, _taken(name)) from fault
    return user


def _taken(name: str) -> str:
    """What to do about a name that somebody has."""
    if User.objects.filter(username=name, is_active=False).exists():
        return f"{name!r} was deactivated: take another name, or let an operator activate this one under Users."
    return f"There is a person named {name!r} already; take another name, or: manage.py changepassword {name}"


def login_name(request: HttpRequest, credentials: Mapping[str, str] | None = None) -> str:
    """The name under which a failed login is kept and logged: one that nobody has may be a password in the wrong field,
    and is told by its digest."""
    name = (credentials or {}).get("username") or request.POST.get("username") or ""
    if not name or ("\x00" not in name and User.objects.filter(username=name).exists()):
        return name
    return f"unknown-{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def _faults(user: User, password: str) -> Iterator[FieldError]:
    try:
        user.clean_fields(exclude={"password"})
    except ValidationError as fault:
        for text in fault.messages:
            yield FieldError(field="name", detail=text)
    try:
        validate_password(password, user)
    except ValidationError as fault:
        for text in fault.messages:
            yield FieldError(field="password", detail=text)
