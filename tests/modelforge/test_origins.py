"""Where the control plane is reached: a browser's address and host names, each fault told without the value."""

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from modelforge.environment import Environment
from modelforge.origins import hosts, public_url

URL, HOSTS = "MODELFORGE_PUBLIC_URL", "MODELFORGE_ALLOWED_HOSTS"


@pytest.mark.parametrize(
    "text",
    [
        "foo",
        "modelforge.example",
        "https://",
        "https:///x",
        "ftp://modelforge.example",
        '"https://modelforge.example"',
        "https://x y/z",
        "https://x/y z",
        "https://x:http",
        "https://x:",
        "https://x:0",
        "https://x:65536",
        "https://[::1",
        "https://[x]",
        "https://*.example",
        "https://x?y",
        "https://x/#y",
        "https://u:hunter2@x",
        "https://u:12/hunter2@x",
    ],
)
def test_an_address_that_no_browser_opens_is_told(text: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"^{URL} is no address .* say https://modelforge.example") as fault:
        public_url(URL, text)
    assert "hunter2" not in str(fault.value)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("https://modelforge.example", "https://modelforge.example"),
        ("https://modelforge.example/", "https://modelforge.example"),
        ("http://localhost:8000", "http://localhost:8000"),
        ("https://10.0.0.5:8443", "https://10.0.0.5:8443"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("https://example.org/modelforge/", "https://example.org/modelforge"),
        ("http://control_plane:65535", "http://control_plane:65535"),
        ("https://bücher.example", "https://bücher.example"),
    ],
)
def test_an_address_that_a_browser_opens_is_kept(text: str, kept: str) -> None:
    assert public_url(URL, text) == kept


@pytest.mark.parametrize("said", ["http://x", "x:8000", "a b", "x/y", "::1", "[x]", "*.example", "..x", '"x'])
def test_what_is_no_host_name_is_told_by_its_place(said: str) -> None:
    with pytest.raises(
        ImproperlyConfigured, match=f"^{HOSTS} has no host name in place 2; say names by comma"
    ) as fault:
        hosts(HOSTS, ["modelforge.internal", said])
    assert "modelforge.internal" not in str(fault.value)


@pytest.mark.parametrize("said", ["*", ".example.org", "modelforge.example", "control_plane", "10.0.0.5", "[fd00::1]"])
def test_a_host_name_is_kept(said: str) -> None:
    assert hosts(HOSTS, ["localhost", said]) == ["localhost", said]


@pytest.mark.parametrize("said", [",", " , "], ids=["a-comma", "blanks-too"])
def test_no_host_name_at_all_is_told(said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(f"{HOSTS}_FILE", raising=False)
    monkeypatch.setenv(HOSTS, said)
    with pytest.raises(ImproperlyConfigured, match=f"^{HOSTS} holds no name; say names by comma"):
        Environment(tmp_path).hosts(HOSTS, "localhost")
    monkeypatch.setenv(HOSTS, "a, b,")
    assert Environment(tmp_path).hosts(HOSTS, "localhost") == ["a", "b"]
