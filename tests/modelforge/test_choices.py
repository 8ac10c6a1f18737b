"""Whoever gives a value that is none of a field's few hears which field it is and which values there are."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import get_resolver
from rest_framework import serializers

from artifacts.models import Job, StorageRoot
from tests.artifacts.ordering import a_root, a_server

APPS = ("nodes", "enrollment", "artifacts", "modelforge")
ODD = "no such <thing>"

get_resolver().url_patterns  # noqa: B018  # reading them imports every view, and so every serializer


def every(kind: type[Any]) -> Iterator[type[Any]]:
    """All classes below a class."""
    for below in kind.__subclasses__():
        yield below
        yield from every(below)


def choices() -> dict[str, serializers.ChoiceField]:
    """Every field of all our serializers that takes one of a few values, by where it stands."""
    found = {}
    for kind in every(serializers.BaseSerializer):
        if kind.__module__.split(".")[0] in APPS and issubclass(kind, serializers.Serializer):
            for name, field in kind().fields.items():
                inner = getattr(field, "child", field)
                if isinstance(inner, serializers.ChoiceField) and not field.read_only:
                    found[f"{kind.__module__}.{kind.__name__}.{name}"] = inner
    return found


CHOICES = choices()


def test_there_are_such_fields_in_every_app() -> None:
    assert {place.split(".")[0] for place in CHOICES} >= {"nodes", "enrollment", "artifacts"}


@pytest.mark.parametrize("place", sorted(CHOICES))
@pytest.mark.parametrize("given", [ODD, None, ["a", "b"], 7], ids=["odd", "null", "list", "number"])
def test_a_value_that_is_none_of_them_is_refused_with_all_that_are(place: str, given: Any) -> None:
    field = CHOICES[place]
    field.required = True
    with pytest.raises(serializers.ValidationError) as caught:
        field.run_validation(given)
    (said,) = caught.value.detail
    listed = str(said).removeprefix("Give one of ").removesuffix(".").split(", ")
    assert listed == [str(value).lower() if isinstance(value, bool) else str(value) for value in field.choices]
    assert ODD not in str(said)


@pytest.mark.parametrize("place", sorted(CHOICES))
def test_each_of_them_is_taken(place: str) -> None:
    taken = [CHOICES[place].run_validation(value) for value in CHOICES[place].choices]
    assert len(taken) == len(set(taken)) > 0


@pytest.fixture
def root(db: None) -> StorageRoot:
    """A proven root."""
    return a_root(a_server())


def fault(response: Any) -> dict[str, str]:
    """The one field at fault, and what is said of it."""
    assert response.status_code == 400, response.content
    (error,) = response.json()["errors"]
    return dict(error)


def test_a_filter_says_so(api: Client, root: StorageRoot) -> None:
    said = fault(api.get("/api/v1/artifacts", {"state": "whole"}))
    assert said == {"field": "state", "detail": "Give one of published, damaged, removed, gone."}


def test_a_filter_that_may_be_repeated_says_so(api: Client, root: StorageRoot) -> None:
    said = fault(api.get("/api/v1/admin/jobs", {"state": ["queued", "done"]}))
    assert said["field"].startswith("state")
    assert said["detail"] == f"Give one of {', '.join(Job.State.values)}."


def test_a_body_says_so(api: Client, root: StorageRoot) -> None:
    body = {"root_id": str(root.pk), "repo_id": "org/model", "allow_formats": ["exe"], "reason": "because"}
    said = fault(api.post("/api/v1/admin/jobs", body, content_type="application/json"))
    assert said["field"].startswith("allow_formats")
    assert said["detail"] == "Give one of pickle, code, archive, other."
