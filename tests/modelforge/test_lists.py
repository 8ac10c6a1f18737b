"""Every list of the admin takes whatever stands in its address."""

from typing import Any

import pytest
from django.contrib import admin
from django.urls import reverse

from tests.nodes import browsing

pytestmark = pytest.mark.django_db

LISTS: dict[str, Any] = {model._meta.label_lower: made for model, made in admin.site._registry.items()}


@pytest.mark.parametrize("name", sorted(LISTS))
@pytest.mark.parametrize("value", ["%00", "a%00b", "%ED%A0%80"], ids=["nul", "nul within", "half a character"])
def test_a_text_that_no_database_holds_is_told_and_no_fault_of_ours(name: str, value: str) -> None:
    browser = browsing.a_superuser()
    app, _, model = name.partition(".")
    address = reverse(f"admin:{app}_{model}_changelist")
    filters = [choice for choice in LISTS[name].list_filter if not isinstance(choice, str)]
    names = [f"{choice[0]}__exact" if isinstance(choice, tuple) else choice.parameter_name for choice in filters]
    for parameter in [*names, "q", "nothing"]:
        assert browser.get(f"{address}?{parameter}={value}").status_code < 500, parameter
