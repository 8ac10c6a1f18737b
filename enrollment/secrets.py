"""The text of every secret: how it is minted, taken apart and compared.

::

    mfn_3kTq0ZbXw9Lp_<43 characters of chance>_0aZ91k
    kind  handle      random                    checksum

The handle finds the row and is no secret. The checksum (CRC32 of all before it) tells a truncated or mistyped paste
from a secret that is merely unknown; it proves nothing. What is stored is the SHA-256 of the whole text. That fast
digest is safe *here* because the random part holds 256 bits of chance: nobody can try them all, however fast it is, so
there is nothing for a slow one (bcrypt, Argon2) to protect. For a password, which people choose, it would be wrong.
It needs no key either, so no secret dies with ``MODELFORGE_SECRET_KEY``.
"""

import hashlib
import hmac
import re
import secrets as chance
import string
import zlib
from dataclasses import dataclass, field
from enum import StrEnum

ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
HANDLE_LENGTH = 12
RANDOM_LENGTH = 43  # 62**43 > 2**256
CHECKSUM_LENGTH = 6  # 62**6 > 2**32

_SHAPE = re.compile(
    rf"(mf[enk])_([0-9A-Za-z]{{{HANDLE_LENGTH}}})_[0-9A-Za-z]{{{RANDOM_LENGTH}}}_([0-9A-Za-z]{{{CHECKSUM_LENGTH}}})"
)


class Kind(StrEnum):
    """What a secret is for; the first thing that its text says."""

    ENROLLMENT = "mfe"
    NODE = "mfn"
    API_KEY = "mfk"


NAMES = {Kind.ENROLLMENT: "enrollment token", Kind.NODE: "node credential", Kind.API_KEY: "API key"}


@dataclass(frozen=True, slots=True)
class Minted:
    """A new secret: its text, told once and kept nowhere, and what is kept."""

    text: str = field(repr=False)
    handle: str
    digest: str
    last_four: str


@dataclass(frozen=True, slots=True)
class Parsed:
    """A text in the shape of a secret; whether it *is* one, the digest has to prove."""

    handle: str
    digest: str


def mint(kind: Kind) -> Minted:
    """A new secret of this kind."""
    handle, random = _draw(HANDLE_LENGTH), _draw(RANDOM_LENGTH)
    body = f"{kind}_{handle}_{random}"
    text = f"{body}_{_checksum(body)}"
    return Minted(text, handle, _digest(text), random[-4:])


def parse(text: str, kind: Kind) -> Parsed | None:
    """The secret's parts, or None where the text is no whole secret of this kind."""
    shape = _SHAPE.fullmatch(text)
    if shape is None or shape[1] != kind or shape[3] != _checksum(text[: -CHECKSUM_LENGTH - 1]):
        return None
    return Parsed(shape[2], _digest(text))


def fault(text: str, kind: Kind) -> str:
    """What is wrong with a text that ``parse`` refused, for the one who sent it."""
    for other in Kind:
        if other is not kind and parse(text, other) is not None:
            return f"This is a whole {NAMES[other]} ({other}_), and a {NAMES[kind]} ({kind}_) is needed."
    return f"This is no whole {NAMES[kind]}: it was cut off or mistyped. Paste all of it, from {kind}_ on."


def matches(digest_a: str, digest_b: str) -> bool:
    """Whether two digests are equal, in a time that does not tell where they differ."""
    return hmac.compare_digest(digest_a, digest_b)


def _draw(length: int) -> str:
    return "".join(chance.choice(ALPHABET) for _ in range(length))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _checksum(body: str) -> str:
    left = zlib.crc32(body.encode("ascii"))
    digits = []
    for _ in range(CHECKSUM_LENGTH):
        left, digit = divmod(left, len(ALPHABET))
        digits.append(ALPHABET[digit])
    return "".join(reversed(digits))
