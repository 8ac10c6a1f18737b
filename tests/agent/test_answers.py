"""Whatever answers, and whatever it says: the agent calls it a trouble with a name, and goes on."""

import socket
from collections.abc import Iterator
from datetime import timedelta
from string import ascii_letters

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agent import protocol, wire
from agent.client import Client
from agent.config import Link
from agent.trouble import NotModelForge, Redirected, Refused, Trouble, Unreachable
from tests.agent.scripted import CREDENTIAL, Answer, ControlPlane, page, problem

FAR_YEAR = "Mon, 01 Jan 99999999999999999999 00:00:00 GMT"
FAR_ZONE = "Mon, 01 Jan 2026 00:00:00 +99999999999999999999"
DEEP = b"[" * 200_000 + b"]" * 200_000
REPLY = b'{"heartbeat_interval_seconds": 15, "telemetry_interval_seconds": 60}'
SHARED = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

values = st.text(st.characters(min_codepoint=1, max_codepoint=255, exclude_characters="\r\n"), max_size=80)
dates = st.one_of(
    values,
    st.from_regex(r"\A[MTWFS][a-z]{2}, \d{1,22} (Jan|Feb|Dec) \d{1,22} \d{1,3}(:\d{1,3}){0,3} ([+-]\d{1,22}|GMT)\Z"),
)
headers = st.fixed_dictionaries(
    {"Content-Type": st.sampled_from(["application/json", "application/problem+json", "text/html"]) | values},
    optional={
        "Date": dates,
        "Retry-After": dates,
        "Location": values | st.builds("http://{}".format, values),
        "Content-Encoding": values,
        "X-Request-ID": values,
    },
)
json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(ascii_letters),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["code", "status", "detail", "protocols"]), inner),
)
bodies = st.one_of(st.binary(max_size=200), json.map(lambda value: repr(value).replace("'", '"').encode()))


@pytest.fixture
def client(plane: ControlPlane) -> Iterator[Client]:
    """A client of the scripted control plane."""
    made = Client(Link(url=plane.url, timeout=timedelta(seconds=5)))
    yield made
    made.close()


def ask(client: Client) -> wire.BeatReply:
    return client.call("POST", protocol.HEARTBEAT, bearer=CREDENTIAL, answer=wire.BeatReply)


def trouble_of(client: Client) -> Trouble:
    with pytest.raises(Trouble) as error:
        ask(client)
    return error.value


def test_an_unreadable_date_is_as_good_as_none(plane: ControlPlane, client: Client) -> None:
    for date in (FAR_YEAR, FAR_ZONE):
        plane.always(protocol.HEARTBEAT, Answer(200, REPLY, {"Content-Type": "application/json", "Date": date}))
        assert ask(client).heartbeat_interval_seconds == 15
        assert client.skew is None
        assert client.exchange("POST", protocol.HEARTBEAT).headers["Date"] == date


@pytest.mark.parametrize("wait", [FAR_YEAR, FAR_ZONE])
def test_an_unreadable_retry_after_is_as_good_as_none(plane: ControlPlane, client: Client, wait: str) -> None:
    plane.always(protocol.HEARTBEAT, page(503, Retry_After=wait))
    assert trouble_of(client).retry_after is None


def test_a_redirect_to_an_address_that_is_none_is_a_redirect(plane: ControlPlane, client: Client) -> None:
    plane.always(protocol.HEARTBEAT, page(302, Location="http://[bad"))
    assert isinstance(trouble_of(client), Redirected)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(200, DEEP, {"Content-Type": "application/json"}),
        Answer(200, b'{"news": ' + DEEP + b"}", {"Content-Type": "application/json"}),
        Answer(400, DEEP, {"Content-Type": "application/problem+json"}),
        Answer(400, b'{"news": ' + DEEP + b"}", {"Content-Type": "application/problem+json"}),
    ],
)
def test_an_answer_nested_without_end_is_no_modelforge(plane: ControlPlane, client: Client, answer: Answer) -> None:
    plane.always(protocol.HEARTBEAT, answer)
    assert isinstance(trouble_of(client), NotModelForge)


@SHARED
@example(status=302, headers={"Location": "http://[bad"}, body=b"")
@example(status=302, headers={"Location": "http://here/a\xadb\xa0c"}, body=b"")
@example(status=200, headers={"Content-Type": "application/json", "Date": FAR_ZONE}, body=REPLY)
@given(
    status=st.sampled_from([200, 201, 302, 307, 400, 401, 403, 407, 426, 429, 500, 503]), headers=headers, body=bodies
)
def test_no_answer_does_more_than_to_be_a_trouble(
    plane: ControlPlane, client: Client, status: int, headers: dict[str, str], body: bytes
) -> None:
    plane.always(protocol.HEARTBEAT, Answer(status, body, headers))
    said = ""
    try:
        ask(client)
    except Trouble as trouble:
        said = str(trouble)
    assert said.isprintable()


def test_a_refusals_words_are_short_and_cannot_steer_a_terminal(plane: ControlPlane, client: Client) -> None:
    words = "\x1b[2J\x1b]0;owned\x07line\nFAKE info all is well\r\x9b31m" + "x" * 5000
    plane.always(protocol.HEARTBEAT, problem(400, words, detail=words, request_id=words, protocols=[1] * 5000))
    refused = trouble_of(client)
    assert isinstance(refused, Refused)
    assert (len(refused.code), len(refused.request_id)) == (64, 64)
    assert "x" * 300 in str(refused)
    assert len(str(refused)) < 700
    assert (refused.code + refused.request_id + str(refused)).isprintable()


def test_a_redirects_address_is_short_and_cannot_steer_a_terminal(plane: ControlPlane, client: Client) -> None:
    plane.always(protocol.HEARTBEAT, page(302, Location="/\x1b[2J" + "x" * 5000))
    text = str(trouble_of(client))
    assert text.isprintable()
    assert len(text) < 600


def test_a_control_plane_that_is_slow_is_not_called_a_firewall() -> None:
    """Connected, and no answer: what is slow is behind the firewall."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        text = _unreachable(silent.getsockname()[1])
    assert "it was connected, and its answer did not come in time" in text
    assert "firewall" not in text


def test_a_connection_that_does_not_come_about_may_be_a_firewalls_work() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        with socket.create_connection(full.getsockname()):  # its backlog is full now: the system drops what comes
            text = _unreachable(full.getsockname()[1])
    assert "no connection in time. A firewall may drop the packets" in text


def _unreachable(port: int) -> str:
    client = Client(Link(url=f"http://127.0.0.1:{port}", timeout=timedelta(seconds=0.3)))
    trouble = trouble_of(client)
    client.close()
    assert isinstance(trouble, Unreachable)
    assert trouble.kind == "timeout"
    return str(trouble)
