"""Debian's Chromium, driven by playwright; it asks nobody but the server under test."""

import shutil

import pytest
from playwright.sync_api import Browser, Playwright

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def launched(playwright: Playwright) -> Browser:
    """The browser, open; a test without one fails and says what to install."""
    path = shutil.which("chromium")
    if path is None:
        pytest.fail("chromium is missing: apt install chromium fonts-dejavu-core")
    return playwright.chromium.launch(executable_path=path, args=FLAGS)
