"""Behind a proxy, on the real web server: whose word is the caller's address."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.parts.control_plane import ControlPlane

REAL, SPOOFED = "203.0.113.9", "198.51.100.7"
pytestmark = pytest.mark.walk


@pytest.fixture(scope="module", params=["X-Forwarded-For", "Clientaddress"])
def control_plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """One that trusts its proxy to say the caller's address in this header."""
    folder: Path = tmp_path_factory.mktemp("behind-a-proxy")
    made = ControlPlane(folder, MODELFORGE_TRUST_PROXY="true", MODELFORGE_CLIENT_HEADER=request.param)
    try:
        yield made.start()
    finally:
        made.remove()


def address_of(control_plane: ControlPlane, headers: dict[str, str]) -> str:
    """The address that the history keeps of an act that is sent with these headers, in their order."""
    answer = control_plane.call("POST", "/api/v1/admin/node-enrollments", {}, headers=headers)
    assert answer.status_code == 201, answer.text
    return str(control_plane.events("enrollment_token.created")[-1]["address"])


def test_the_proxys_header_is_believed_and_one_of_one_word_has_no_other_spelling(control_plane: ControlPlane) -> None:
    name = control_plane.environment["MODELFORGE_CLIENT_HEADER"]
    assert address_of(control_plane, {name: f"{SPOOFED}, {REAL}"}) == REAL
    other = name.replace("-", "_") if "-" in name else "Client_address"
    told = {
        address_of(control_plane, headers) for headers in ({other: SPOOFED, name: REAL}, {name: REAL, other: SPOOFED})
    }
    # The web server makes one name of both spellings: which is why docs/operating.md asks the proxy to drop one.
    assert told == ({REAL} if name == "Clientaddress" else {REAL, SPOOFED})


def test_whoever_says_another_header_is_not_believed(control_plane: ControlPlane) -> None:
    name = control_plane.environment["MODELFORGE_CLIENT_HEADER"]
    others = {"Forwarded": f"for={SPOOFED}", "X-Real-IP": SPOOFED}
    if name == "Clientaddress":
        others |= {"X-Forwarded-For": SPOOFED, "X_Forwarded_For": SPOOFED}
    assert address_of(control_plane, others) == "127.0.0.1"
