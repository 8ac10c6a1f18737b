"""What a list's address asks for, checked: a parameter that means nothing is told, never passed over in silence."""

from collections.abc import Iterator
from typing import Any

from django.contrib.admin.options import IS_FACETS_VAR, IS_POPUP_VAR, TO_FIELD_VAR
from django.contrib.admin.views.main import ALL_VAR, ERROR_FLAG, ORDER_VAR, PAGE_VAR, SEARCH_VAR, ChangeList
from django.db.models import BooleanField
from django.http import HttpRequest
from unfold.contrib.filters.admin import TextFilter

OWN = {ALL_VAR, ORDER_VAR, PAGE_VAR, SEARCH_VAR, IS_FACETS_VAR, IS_POPUP_VAR, TO_FIELD_VAR}
_KEPT = "_modelforge_faults"


def faults(model_admin: Any, request: HttpRequest) -> list[str]:
    """What is wrong with the address, in words; each names its parameter."""
    if ERROR_FLAG in request.GET:
        return ["The list was asked for a page or an order that it does not have."]
    filters = {}
    for choice in model_admin.get_list_filter(request):
        filters[f"{choice[0]}__exact" if isinstance(choice, tuple) else choice.parameter_name] = choice
    found = [f"There is no filter named “{name}” here." for name in request.GET if name not in {*OWN, *filters}]
    for name, choice in filters.items():
        said = (("".join(_fault(choice, value, model_admin, request))) for value in request.GET.getlist(name) if value)
        found += [f"“{name}”: {told}" for told in said if told]
    return found


def _fault(choice: Any, value: str, model_admin: Any, request: HttpRequest) -> Iterator[str]:
    """What a filter says of a value, or nothing."""
    if "\0" in value:
        yield "A text holds the character NUL; leave it out."
        return
    if isinstance(choice, tuple):
        field = model_admin.opts.get_field(choice[0])
        allowed = ["1", "0"] if isinstance(field, BooleanField) else [str(key) for key, _ in field.flatchoices]
    elif hasattr(choice, "fault"):
        yield choice.fault(value)
        return
    elif getattr(choice, "any_value", False) or issubclass(choice, TextFilter):
        return
    else:
        allowed = [key for key, _ in choice.lookups(choice, request, model_admin)]
    if value not in allowed:
        yield f"“{value[:80]}” is not one of {', '.join(allowed)}."


class CheckedList:
    """Of a model's admin: with a fault in the address the list says so, and shows nothing as if it were filtered."""

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """The list, or what is wrong with the address."""
        told = faults(self, request)
        setattr(request, _KEPT, told)
        if told:  # Django itself would send the browser to the list without the parameters
            kept = request.GET.copy()
            for name in set(kept) - {ORDER_VAR, SEARCH_VAR}:
                del kept[name]
            request.GET = kept  # type: ignore[assignment]
        context = (extra_context or {}) | {"filter_faults": told}
        return super().changelist_view(request, context)  # type: ignore[misc]

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        """The list's rows; none under a fault."""
        listed: ChangeList = super().get_changelist_instance(request)  # type: ignore[misc]
        if getattr(request, _KEPT, []):
            listed.result_list, listed.result_count = listed.queryset.none(), 0
        return listed
