"""The filters beside the node list."""

from typing import Any
from uuid import UUID

from django.contrib.admin import SimpleListFilter as _SimpleListFilter
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.contrib.filters.admin import DropdownFilter, RadioFilter, TextFilter

from nodes.admin.access import clock
from nodes.admin.fleet import FLAGS, is_, needs_attention
from nodes.liveness import Liveness
from nodes.models import CredentialState, Node

Choices = list[tuple[str, str]]


class LivenessFilter(RadioFilter):  # type: ignore[misc]
    """By the liveness of now, which may be ahead of the stored one."""

    title = "liveness"
    parameter_name = "liveness"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        """The three states."""
        return [(state.value, state.value.capitalize()) for state in Liveness]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Node]) -> QuerySet[Node]:
        """The nodes that show it."""
        chosen = self.value()
        if chosen not in set(Liveness):
            return queryset
        return queryset.filter(is_(Liveness(chosen), clock()))


class ServiceFilter(RadioFilter):  # type: ignore[misc]
    """Enabled, disabled, retired; the retired are left out unless asked for."""

    title = "service"
    parameter_name = "service"
    all_option = ["", "All but retired"]

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        """What operators may have decided."""
        return [("enabled", "Enabled"), ("disabled", "Disabled"), ("retired", "Retired"), ("any", "All")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Node]) -> QuerySet[Node]:
        """By the operators' axis."""
        match self.value():
            case "enabled":
                return queryset.filter(retired_at=None, enabled=True)
            case "disabled":
                return queryset.filter(retired_at=None, enabled=False)
            case "retired":
                return queryset.filter(retired_at__isnull=False)
            case "any":
                return queryset
        return queryset.filter(retired_at=None)


class FlagFilter(DropdownFilter):  # type: ignore[misc]
    """By one flag, or all that needs attention."""

    title = "flag"
    parameter_name = "flag"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        """Every flag."""
        return [("attention", "Needs attention"), *((key, title) for key, (title, _) in FLAGS.items())]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Node]) -> QuerySet[Node]:
        """The nodes that carry it."""
        chosen = self.value()
        if chosen == "attention":
            return queryset.filter(needs_attention(clock()))
        return queryset.filter(FLAGS[chosen][1]) if chosen in FLAGS else queryset


class CredentialFilter(RadioFilter):  # type: ignore[misc]
    """By the credential's axis."""

    title = "credential"
    parameter_name = "credential"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        """The three states."""
        return [(value, str(label)) for value, label in CredentialState.choices]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Node]) -> QuerySet[Node]:
        """The nodes in it."""
        chosen = self.value()
        return queryset.filter(credential_state=chosen) if chosen in CredentialState.values else queryset


class RoleFilter(DropdownFilter):  # type: ignore[misc]
    """By role, out of those in use."""

    title = "role"
    parameter_name = "role"

    any_value = True  # the list is filtered by a role also where nobody has it

    def has_output(self) -> bool:
        """Django passes a filter over that has no choices; one that was asked for holds."""
        return bool(self.lookup_choices or self.value())

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        """At most a hundred."""
        roles = Node.objects.exclude(role="").order_by("role").values_list("role", flat=True).distinct()
        return [(role, role) for role in roles[:100]]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Node]) -> QuerySet[Node]:
        """The nodes with it."""
        chosen = self.value()
        return queryset.filter(role=chosen) if chosen else queryset


class EligibilityFilter(RadioFilter):  # type: ignore[misc]
    """By what a node may be used for."""

    title = "eligibility"
    parameter_name = "eligible"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        """The three purposes."""
        return [("production", "Production"), ("lab", "Lab"), ("benchmark", "Benchmark")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Node]) -> QuerySet[Node]:
        """The nodes that are eligible."""
        chosen = self.value()
        if chosen in {"production", "lab", "benchmark"}:
            return queryset.filter(**{f"{chosen}_eligible": True})
        return queryset


FILTERS: tuple[type[_SimpleListFilter], ...] = (
    LivenessFilter,
    ServiceFilter,
    CredentialFilter,
    EligibilityFilter,
    RoleFilter,
    FlagFilter,
)


class NodeTextFilter(TextFilter):  # type: ignore[misc]
    """By node, written as its id or as part of a name; subclasses say whose name, over rows that have a ``node_id``."""

    title = "node (name or id)"
    parameter_name = "node"

    def named(self, queryset: QuerySet[Any], part: str) -> QuerySet[Any]:
        """The rows whose node has this in its name."""
        raise NotImplementedError

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """What belongs to the node."""
        chosen = str(self.value() or "").strip()
        if not chosen:
            return queryset
        try:
            return queryset.filter(node_id=UUID(chosen))
        except ValueError:
            return self.named(queryset, chosen)
