"""The promise's first sentence: a fresh clone, `make up`, and this very server is online in the node list."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import requests
from playwright.sync_api import sync_playwright

from tests.parts.chromium import launched
from tests.parts.ports import free_port, until
from tests.parts.start import BACKEND
from tests.parts.up import Up

ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.walk,
    pytest.mark.timeout(400),
    pytest.mark.skipif(os.environ.get(BACKEND, "postgresql") != "sqlite", reason="it runs on SQLite: shown there"),
]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What a stranger has; only the packages are not fetched again."""
    folder = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", "--no-hardlinks", str(ROOT), str(folder)], check=True)
    return folder


def make_up(clone: Path, port: int, home: Path) -> Up:
    home.mkdir(exist_ok=True)
    command = ["make", "up", f"PYTHON={sys.executable}"]
    return Up(command, clone, clone / "var", port, HOME=str(home), MODELFORGE_VENV=sys.prefix)


def test_a_fresh_clone_brings_this_server_online_and_goes_on_as_the_same_node(clone: Path, tmp_path: Path) -> None:
    port, home = free_port(), tmp_path / "home"
    up = make_up(clone, port, home)
    try:
        first, node = up.told(), up.node()
        assert set(first) == {"url", "admin_token", "username", "password"}
        assert first["url"] == f"http://127.0.0.1:{port}"
        assert (clone / "var" / "up.json").stat().st_mode & 0o777 == 0o600
        assert node["liveness"] == "online"
        assert f"{node['display_name']} online" in row_in_a_browser(first)
        assert all(text in up.log.read_text() for text in first.values())
        processes = up.family()
        secrets = (first["admin_token"], first["password"])
        said = " ".join(" ".join(process.cmdline()) for process in processes)
        assert not [secret for secret in secrets if secret in said]
        assert up.interrupt() in {0, 2, -2}  # make itself says that it was interrupted
        assert not [
            process for process in processes if process.is_running() and process.status() != psutil.STATUS_ZOMBIE
        ]
        assert not subprocess.run(
            ["git", "status", "--porcelain"], cwd=clone, capture_output=True, text=True, check=True
        ).stdout.replace(f"?? {up.log.name}\n", "")
    finally:
        up.end()
    up = make_up(clone, port, home)
    try:
        assert up.told() == first
        assert up.node()["id"] == node["id"]
        assert up.node()["liveness"] == "online"
    finally:
        up.end()
    shutil.rmtree(clone)


def test_a_scheduler_that_dies_is_started_again_and_slow_senders_hold_up_nobody(clone: Path, tmp_path: Path) -> None:
    port = free_port()
    up = make_up(clone, port, tmp_path / "home")
    try:
        up.told()
        (scheduler,) = schedulers(up)
        scheduler.kill()
        until(lambda: [found for found in schedulers(up) if found.pid != scheduler.pid], "another scheduler")
        senders = [socket.create_connection(("127.0.0.1", port)) for _ in range(8)]
        for number, sender in enumerate(senders):
            sender.sendall(SLOW[number % len(SLOW)])
        assert requests.get(f"http://127.0.0.1:{port}/healthz", timeout=5).status_code == 200
        for sender in senders:
            sender.close()
    finally:
        up.end()
    shutil.rmtree(clone)


def row_in_a_browser(told: dict[str, str]) -> str:
    """The first node of the list, as a person sees it who logs in with what `make up` printed."""
    with sync_playwright() as playwright:
        browser = launched(playwright)
        page = browser.new_page()
        page.goto(f"{told['url']}/admin/")
        page.fill("#id_username", told["username"])
        page.fill("#id_password", told["password"])
        page.click("#login-form button[type=submit]")
        page.get_by_role("link", name="Compute nodes").first.click()
        text = page.locator("#result_list tbody tr").first.inner_text()
        browser.close()
    return " ".join(text.split())


def schedulers(up: Up) -> list[psutil.Process]:
    """The processes that only say when something is due."""
    found = []
    for process in up.family():
        with contextlib.suppress(psutil.Error):
            if process.cmdline()[-1:] == ["beat"]:
                found.append(process)
    return found


SLOW = (
    b"POST /api/v1/agent/heartbeat HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n\r\n{",
    b"POST /admin/login/ HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    b"Cookie: csrftoken=" + b"a" * 32 + b"\r\nContent-Length: 500\r\n\r\nx",
)
"""Requests whose bodies never end."""
