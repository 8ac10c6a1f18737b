"""A person at a browser, as plain HTTP: logs in, fills forms, follows every link, and keeps all answers."""

import re
from collections.abc import Callable
from html import unescape
from urllib.parse import urljoin, urlsplit

import requests

_FIELD = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')
_NONCE = re.compile(r'name="form_nonce" value="([^"]+)"')
_LINK = re.compile(r'href="([^"#]+)"')

Keep = Callable[[str, requests.Response], requests.Response]


class Browser:
    """One session; every answer goes to ``keep``."""

    def __init__(self, url: str, keep: Keep) -> None:
        self.url = url
        self._keep = keep
        self.session = requests.Session()
        self.session.trust_env = False

    def get(self, path: str) -> requests.Response:
        """A page."""
        return self._keep(f"GET {path}", self.session.get(self.url + path, timeout=20))

    def send(self, path: str, **fields: str) -> requests.Response:
        """The page's form, filled in and sent; the answer itself, no redirect followed."""
        page = self.get(path).text
        found, once = _FIELD.search(page), _NONCE.search(page)
        assert found is not None, f"{path} has no form"
        data = fields | {"csrfmiddlewaretoken": found[1]} | ({"form_nonce": once[1]} if once else {})
        answer = self.session.post(
            self.url + path, data=data, headers={"Referer": self.url + path}, timeout=20, allow_redirects=False
        )
        return self._keep(f"POST {path}", answer)

    def log_in(self, name: str, password: str) -> requests.Response:
        """The login page."""
        return self.send("/admin/login/", username=name, password=password, next="/admin/")

    def walk(self, start: str = "/admin/", most: int = 90) -> set[str]:
        """Follow every link of this site from the start on, orders and filters of lists aside; what was seen."""
        waiting, seen = [start], set[str]()
        while waiting and len(seen) < most:
            path = waiting.pop(0)
            if path in seen or path.startswith("/admin/logout"):
                continue
            seen.add(path)
            page = self.get(path)
            if "text/html" not in page.headers.get("Content-Type", ""):
                continue
            for link in _LINK.findall(page.text):
                whole = urljoin(self.url + path, unescape(link))
                if whole.startswith(self.url + "/") and "/static/" not in whole and "?" not in whole:
                    waiting.append(urlsplit(whole).path)
        return seen
