"""A form that makes a secret, sent again (a reloaded page), makes nothing more and tells no secret."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from enrollment.models import ApiKey, EnrollmentToken, NodeCredential
from nodes.models import IdempotentAnswer
from tests.nodes import browsing
from tests.nodes.browsing import instant, words

pytestmark = pytest.mark.django_db

FORMS: list[tuple[str, dict[str, str], type[Any]]] = [
    ("enrollmenttoken_add", {"display_name": "server01", "expires_in_seconds": "900"}, EnrollmentToken),
    ("apikey_add", {"name": "nightly", "role": "auditor", "days": "30"}, ApiKey),
    ("nodecredential_rotate", {"overlap": "3600"}, NodeCredential),
]


@pytest.fixture
def address(request: pytest.FixtureRequest, enrolled_node: Callable[..., Any]) -> str:
    """The form's page."""
    node = enrolled_node(at=instant() - timedelta(minutes=5)).node
    name = request.getfixturevalue("name")
    return reverse(f"admin:enrollment_{name}", args=[node.pk] if name == "nodecredential_rotate" else [])


@pytest.mark.parametrize(("name", "form", "model"), FORMS)
def test_a_form_sent_again_makes_nothing_and_leads_to_what_it_made(
    name: str, form: dict[str, str], model: type[Any], address: str, mara: Client
) -> None:
    whole = form | {"form_nonce": mara.get(address).context["form_nonce"]}
    before = model.objects.count()
    first = mara.post(address, whole)
    secret = first.context["secret"]
    again = mara.post(address, whole)
    assert model.objects.count() == before + 1
    assert again.status_code == 409
    assert "its secret is not shown again" in words(again)
    assert secret not in again.content.decode()
    assert secret.split("_")[2] not in str(list(IdempotentAnswer.objects.values()))
    made = mara.get(again.context["made"].link)
    assert secret.split("_")[2][-4:] in made.content.decode()


@pytest.mark.parametrize(("name", "form", "model"), FORMS)
def test_the_same_form_opened_anew_makes_another(
    name: str, form: dict[str, str], model: type[Any], address: str, mara: Client
) -> None:
    before = IdempotentAnswer.objects.count()
    for number in range(2):
        said = form | ({"name": f"nightly-{number}"} if name == "apikey_add" else {})
        assert browsing.sent(mara, address, said).status_code == 200
    assert IdempotentAnswer.objects.count() == before + 2


@pytest.mark.parametrize(("name", "form", "model"), FORMS)
def test_a_form_without_a_nonce_of_its_own_makes_nothing(
    name: str, form: dict[str, str], model: type[Any], address: str, mara: Client
) -> None:
    before = model.objects.count()
    for nonce in ("", "made-up:1:x"):
        response = mara.post(address, form | {"form_nonce": nonce})
        assert response.status_code == 422
        assert "send it once more" in words(response)
    assert model.objects.count() == before


def test_a_refused_form_may_be_sent_again_corrected(mara: Client) -> None:
    to = reverse("admin:enrollment_apikey_add")
    _, form, _ = FORMS[1]
    browsing.sent(mara, to, form)
    opened = mara.get(to).context["form_nonce"]
    assert mara.post(to, form | {"form_nonce": opened}).status_code == 422  # the name is taken
    assert mara.post(to, form | {"name": "weekly", "form_nonce": opened}).status_code == 200
