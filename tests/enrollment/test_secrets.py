"""Secrets: minted, taken apart, compared."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enrollment import secrets
from enrollment.secrets import ALPHABET, Kind

KINDS = st.sampled_from(list(Kind))


@pytest.mark.parametrize("kind", list(Kind))
def test_a_minted_secret_is_taken_apart_into_its_handle_and_digest(kind: Kind) -> None:
    minted = secrets.mint(kind)
    parsed = secrets.parse(minted.text, kind)
    assert parsed == secrets.Parsed(minted.handle, minted.digest)
    assert minted.text.startswith(f"{kind}_{minted.handle}_")


def test_the_random_part_holds_at_least_256_bits() -> None:
    random = secrets.mint(Kind.NODE).text.split("_")[2]
    assert len(ALPHABET) ** len(random) >= 2**256
    assert set(random) <= set(string.ascii_letters + string.digits)


def test_two_minted_secrets_share_neither_handle_nor_random_part() -> None:
    parts = [secrets.mint(Kind.NODE).text.split("_")[1:3] for _ in range(200)]
    assert len({handle for handle, _ in parts}) == len({random for _, random in parts}) == 200


def test_the_last_four_are_of_the_random_part_and_not_of_the_checksum() -> None:
    minted = secrets.mint(Kind.ENROLLMENT)
    assert minted.last_four == minted.text.split("_")[2][-4:]


def test_a_minted_secret_does_not_show_its_text_when_printed() -> None:
    minted = secrets.mint(Kind.NODE)
    assert minted.text not in repr(minted)


@given(kind=KINDS, data=st.data())
def test_any_one_character_changed_is_noticed(kind: Kind, data: st.DataObject) -> None:
    text = secrets.mint(kind).text
    place = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.characters().filter(lambda letter: letter != text[place]))
    assert secrets.parse(text[:place] + other + text[place + 1 :], kind) is None


@given(kind=KINDS, data=st.data())
def test_a_truncated_paste_is_noticed(kind: Kind, data: st.DataObject) -> None:
    text = secrets.mint(kind).text
    assert secrets.parse(text[: data.draw(st.integers(0, len(text) - 1))], kind) is None


@given(text=st.text(max_size=200), kind=KINDS)
def test_no_text_breaks_the_parser(text: str, kind: Kind) -> None:
    assert secrets.parse(text, kind) is None


def test_surrounding_letters_are_not_passed_over() -> None:
    text = secrets.mint(Kind.NODE).text
    assert [secrets.parse(wrong, Kind.NODE) for wrong in (text + "\n", " " + text, text + text)] == [None] * 3


def test_a_secret_of_another_kind_is_refused_and_named() -> None:
    text = secrets.mint(Kind.NODE).text
    assert secrets.parse(text, Kind.ENROLLMENT) is None
    assert "node credential" in secrets.fault(text, Kind.ENROLLMENT)


def test_a_truncated_secret_is_told_apart_from_one_of_another_kind() -> None:
    text = secrets.mint(Kind.ENROLLMENT).text[:-3]
    said = secrets.fault(text, Kind.ENROLLMENT)
    assert "cut off" in said
    assert text not in said


def test_equal_digests_match() -> None:
    minted = secrets.mint(Kind.API_KEY)
    assert secrets.matches(minted.digest, minted.digest)
    assert not secrets.matches(minted.digest, secrets.mint(Kind.API_KEY).digest)
