"""Who may open the pages and who may act on them: operators act, auditors read, all others are turned away."""

from datetime import UTC, datetime
from typing import Any

from django.contrib.admin import ShowFacets
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from unfold.admin import ModelAdmin

from nodes.admin.parameters import CheckedList
from nodes.callers import Caller, Refused, Role, person

_KEPT = "_modelforge_role"


def role_of(request: HttpRequest) -> Role | None:
    """The role of the person at the browser, asked of the database once a request; None: neither may read nor act."""
    if not hasattr(request, _KEPT):
        try:
            role: Role | None = person(request).role
        except Refused:
            role = None
        setattr(request, _KEPT, role)
    kept: Role | None = getattr(request, _KEPT)
    return kept


def may_read(request: HttpRequest) -> bool:
    """Operators and auditors."""
    return role_of(request) is not None


def may_act(request: HttpRequest) -> bool:
    """Operators, superusers among them."""
    return role_of(request) is Role.OPERATOR


def operator(request: HttpRequest) -> Caller:
    """The operator at the browser, for an act's ``by``.

    Raises:
        PermissionDenied: for everybody else.
    """
    if not may_act(request):
        raise PermissionDenied("Only an operator may do this.")
    return person(request)


def clock() -> datetime:
    """Now, as a page reads it."""
    return datetime.now(UTC)


class ReadOnlyAdmin(CheckedList, ModelAdmin):  # type: ignore[misc]
    """A model that its pages show and never write: every change is an act with a page of its own."""

    show_full_result_count = False
    show_facets = ShowFacets.NEVER  # a count for each choice of each filter
    list_per_page = 50
    list_filter_submit = True  # the filters are one form with a button of its own
    list_max_show_all = 0
    actions = None

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Readers see it."""
        return may_read(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Readers see it."""
        return may_read(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody adds by the generic form."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody changes by the generic form."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody deletes."""
        return False
