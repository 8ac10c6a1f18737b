"""What operators change of an account: its role and whether it may log in; somebody who can act always remains."""

from datetime import datetime

from django.contrib.auth.models import Group, User
from django.db import transaction
from django.db.models import Q

from agent.protocol import Code
from agent.wire import FieldError
from enrollment.people import GROUPS
from nodes.audit import Subject, record
from nodes.callers import AUDITORS, OPERATORS, Caller, Refused, Role, require_operator
from nodes.event_types import EventType

ACTS = Q(is_active=True, is_staff=True) & (Q(is_superuser=True) | Q(groups__name=OPERATORS))


def role_of(user: User) -> Role | None:
    """As what the account acts when it may log in; None: neither reads nor acts."""
    groups = {group.name for group in user.groups.all()}
    if user.is_superuser or OPERATORS in groups:
        return Role.OPERATOR
    return Role.AUDITOR if AUDITORS in groups else None


def revise(user: User, *, role: Role | None, active: bool, by: Caller, now: datetime) -> bool:
    """Set an account's role and whether it may log in; whether that changed anything. A superuser stays an operator.

    Raises:
        Refused: ``forbidden``; ``state_conflict`` where an operator would put themselves out, or nobody who can act
            would remain.
    """
    require_operator(by)
    with transaction.atomic():
        group = Group.objects.select_for_update().get_or_create(name=OPERATORS)[0]  # two at once: one after the other
        found = User.objects.select_for_update().get(pk=user.pk)
        before, was = role_of(found), found.is_active and found.is_staff
        role = Role.OPERATOR if found.is_superuser else role
        fields = [name for name, changed in (("role", role != before), ("active", active != was)) if changed]
        if not fields:
            return False
        if was and before is Role.OPERATOR:
            _refuse_to_lose(found, stays=active, by=by, field=fields[-1])
        found.is_active, found.is_staff = active, active or found.is_staff
        found.save(update_fields=["is_active", "is_staff"])
        if not found.is_superuser:
            found.groups.remove(group, *Group.objects.filter(name=AUDITORS))
            if role is not None:
                found.groups.add(Group.objects.get_or_create(name=GROUPS[role])[0])
        told = {
            "fields": fields,
            "groups": sorted(found.groups.values_list("name", flat=True)),
            "active": active,
            "superuser": found.is_superuser,
        }
        about = Subject("person", str(found.pk), found.get_username())
        record(EventType.PERSON_CHANGED, by=by, about=about, at=now, **told)
    return True


def _refuse_to_lose(user: User, *, stays: bool, by: Caller, field: str) -> None:
    """An operator is about to become less: not oneself, and not the last."""
    if by.kind == "person" and by.id == str(user.pk):
        what = "take the role of operator from yourself" if stays else "deactivate yourself"
        detail = f"You cannot {what}; let another operator do it."
    elif not User.objects.filter(ACTS).exclude(pk=user.pk).exists():
        detail = f"{user.get_username()} is the last active operator: nobody could act any more. Add another one first."
    else:
        return
    raise Refused(Code.STATE_CONFLICT, detail, errors=[FieldError(field=field, detail=detail)])
