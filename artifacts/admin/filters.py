"""The filters beside the lists of storage roots, jobs and artifacts."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.contrib.filters.admin import RadioFilter, TextFilter

from agent import wire
from artifacts import remedies, standing
from artifacts.models import Artifact, Job, StorageRoot
from nodes.admin.filters import NodeTextFilter

Choices = list[tuple[str, str]]


class NodeFilter(NodeTextFilter):
    """By node: its id, or part of its name."""

    def named(self, queryset: QuerySet[Any], part: str) -> QuerySet[Any]:
        """What belongs to nodes of such a name."""
        return queryset.filter(node__display_name__icontains=part)


class RootFilter(TextFilter):  # type: ignore[misc]
    """By storage root: its id, or part of its path in the agent's environment."""

    title = "storage root (path or id)"
    parameter_name = "root"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """What belongs to it."""
        chosen = str(self.value() or "").strip()
        if not chosen:
            return queryset
        try:
            return queryset.filter(root_id=UUID(chosen))
        except ValueError:
            return queryset.filter(root__container_path__icontains=chosen)


class RootStateFilter(RadioFilter):  # type: ignore[misc]
    """By what was proven last; the retired are left out unless asked for."""

    title = "state"
    parameter_name = "state"
    all_option = ["", "All but retired"]

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        """The states."""
        return [(value, str(label)) for value, label in StorageRoot.State.choices]

    def queryset(self, request: HttpRequest, queryset: QuerySet[StorageRoot]) -> QuerySet[StorageRoot]:
        """The roots in it."""
        chosen = self.value()
        if chosen in StorageRoot.State.values:
            return queryset.filter(state=chosen)
        return queryset.exclude(state=StorageRoot.State.RETIRED)


class JobStateFilter(RadioFilter):  # type: ignore[misc]
    """By where a job stands."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        """The states, and the two that have not ended together."""
        return [("active", "Queued or running"), *((value, str(label)) for value, label in Job.State.choices)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job]:
        """The jobs in it."""
        chosen = self.value()
        if chosen == "active":
            return queryset.filter(state__in=Job.ACTIVE)
        return queryset.filter(state=chosen) if chosen in Job.State.values else queryset


class JobTypeFilter(RadioFilter):  # type: ignore[misc]
    """By what a job does."""

    title = "type"
    parameter_name = "type"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        """The types, and preflights apart."""
        words = [(kind, said.capitalize()) for kind, said in remedies.TYPES.items()]
        return [*words, ("preflight", "Preflight only")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job]:
        """The jobs of it."""
        chosen = self.value()
        if chosen == "preflight":
            return queryset.filter(preflight_only=True)
        if chosen == wire.ACQUIRE:
            return queryset.filter(type=chosen, preflight_only=False)
        return queryset.filter(type=chosen) if chosen in remedies.TYPES else queryset


class ArtifactStateFilter(RadioFilter):  # type: ignore[misc]
    """By what is known of an artifact's bytes; the removed and the gone are left out unless asked for."""

    title = "state"
    parameter_name = "state"
    all_option = ["", "All that lie there"]

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        """The states."""
        return [
            *((value, str(label)) for value, label in Artifact.State.choices),
            (standing.GONE, "Gone with its root or node"),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Artifact]) -> QuerySet[Artifact]:
        """The artifacts in it."""
        chosen = self.value()
        return queryset.filter(standing.shows(chosen) if chosen in standing.STATES else standing.HERE)
