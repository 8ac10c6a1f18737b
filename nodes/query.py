"""Reading what a request says: query strings and bodies checked field by field, and pages with bounds."""

from collections.abc import Sequence
from typing import Any, NoReturn

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.pagination import PageNumberPagination
from rest_framework.request import Request

from nodes import labels

DEFAULT_PAGE_SIZE = 50
MAX_PAGE_SIZE = 200


class Strict(serializers.Serializer[Any]):
    """A serializer that refuses names it does not know: a misspelt filter must not quietly match everything."""

    def to_internal_value(self, data: Any) -> Any:
        """The checked values; every unknown name is a fault of its own."""
        if isinstance(data, dict):
            known = {name for name, field in self.fields.items() if not field.read_only}
            unknown = [name for name in data if name not in known]
            if unknown:
                said = f"Not known here; there are {', '.join(sorted(known))}."
                raise serializers.ValidationError({name: [said] for name in unknown})
        return super().to_internal_value(data)


class OneOf(serializers.ChoiceField):
    """One of a few values; whoever gives another hears which there are, and not what they said."""

    def fail(self, key: str, **kwargs: Any) -> NoReturn:
        """Refuse, with all values that would do."""
        if key not in {"invalid_choice", "null"}:
            super().fail(key, **kwargs)
        raise serializers.ValidationError(f"Give one of {', '.join(map(_as_json, self.choices))}.", code=key)


def _as_json(value: Any) -> str:
    """As it stands in a body or query."""
    return str(value).lower() if isinstance(value, bool) else str(value)


class Flag(OneOf):
    """``true`` or ``false`` in a query string, and nothing else."""

    def __init__(self, **options: Any) -> None:
        super().__init__(choices=["true", "false"], **options)

    def to_internal_value(self, data: Any) -> bool:  # type: ignore[override]
        """The truth."""
        return bool(super().to_internal_value(data) == "true")


class Label(serializers.CharField):
    """``key:value``, as a pair."""

    def to_internal_value(self, data: Any) -> tuple[str, str]:  # type: ignore[override]
        """The pair."""
        key, colon, value = super().to_internal_value(data).partition(":")
        if not colon or not labels.KEY.fullmatch(key):
            raise serializers.ValidationError("Say key:value, for example site:office.")
        return key, value


def read_query(request: Request, kind: type[Strict]) -> dict[str, Any]:
    """The query string as ``kind`` understands it.

    Raises:
        ValidationError: naming every parameter at fault; answered with 400.
    """
    checker = kind()
    many = {name for name, field in checker.fields.items() if isinstance(field, serializers.ListField)}
    given = {name: values if name in many else values[-1] for name, values in request.query_params.lists() if values}
    checked = kind(data=given)
    checked.is_valid(raise_exception=True)
    return dict(checked.validated_data)


def read_body(request: Request, kind: type[Strict]) -> dict[str, Any]:
    """The body as ``kind`` understands it.

    Raises:
        ValidationError: naming every field at fault; answered with 400.
    """
    checked = kind(data=request.data)
    checked.is_valid(raise_exception=True)
    return dict(checked.validated_data)


class Paged(Strict):
    """The parameters of a list in pages."""

    page = serializers.IntegerField(min_value=1, max_value=10**6, default=1)
    page_size = serializers.IntegerField(min_value=1, max_value=MAX_PAGE_SIZE, default=DEFAULT_PAGE_SIZE)


class Pages(PageNumberPagination):
    """Numbered pages of 50, or of ``page_size`` up to 200; what is out of bounds is refused by name."""

    page_size = DEFAULT_PAGE_SIZE
    page_size_query_param = "page_size"
    page_query_description = "The page, from 1."
    page_size_query_description = f"How many a page holds: 1 to {MAX_PAGE_SIZE}, {DEFAULT_PAGE_SIZE} unless told."

    def paginate_queryset(
        self, queryset: QuerySet[Any] | Sequence[Any], request: Request, view: Any = None
    ) -> list[Any] | None:
        """One page.

        Raises:
            ValidationError: naming ``page`` or ``page_size``.
        """
        bounds = Paged(data={name: request.query_params[name] for name in _BOUNDS & request.query_params.keys()})
        bounds.is_valid(raise_exception=True)
        try:
            return super().paginate_queryset(queryset, request, view)
        except NotFound as fault:
            raise serializers.ValidationError({"page": ["There is no such page."]}) from fault


_BOUNDS = {"page", "page_size"}
