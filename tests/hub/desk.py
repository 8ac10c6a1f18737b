"""What the stand-in Hub, its CDN and another host answer when all is well."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote, urlsplit

from tests.hub import answers
from tests.hub.answers import Answer
from tests.hub.faults import Fault, Request
from tests.hub.repositories import File, Repository

if TYPE_CHECKING:
    from tests.hub.hub import Hub

PAGE = 1000  # rows of a tree


class Desk:
    """Finds what a request is about, and answers."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def at_the_hub(self, request: Request) -> tuple[Answer, Fault]:
        """The API, and files by their names."""
        path = urlsplit(request.path).path.removeprefix(self._hub.prefix)
        parts = path.strip("/").split("/")  # raw: a revision may hold %2F
        if parts[:2] == ["api", "models"]:
            return self._api(request, [unquote(part) for part in parts[2:]])
        if "resolve" in parts:
            at = parts.index("resolve")
            repo_id, revision, name = "/".join(parts[:at]), parts[at + 1], "/".join(parts[at + 2 :])
            request.kind, request.file = "resolve", unquote(name)
            asked = unquote(repo_id), unquote(revision)
            return self._hub.consult(request, lambda fault: self._file(request, *asked, fault))
        return self._hub.consult(request, lambda _: answers.refusal(404))

    def at_the_cdn(self, request: Request) -> tuple[Answer, Fault]:
        """Bytes by signed links."""
        request.kind = "cdn"
        (signature,) = parse_qs(urlsplit(request.path).query).get("Signature") or [""]
        link = self._hub.links.of(signature)
        if link is None:
            return self._hub.consult(request, lambda _: _denied())
        request.file = link.file.path
        file = link.file
        if not self._hub.links.use(link):
            return self._hub.consult(request, lambda _: _denied())
        return self._hub.consult(request, lambda fault: answers.bytes_of(file.content, request, file.cdn_etag, fault))

    def at_another_host(self, request: Request) -> tuple[Answer, Fault]:
        """Nothing is here."""
        request.kind = "elsewhere"
        return self._hub.consult(request, lambda _: answers.refusal(404))

    def _api(self, request: Request, parts: list[str]) -> tuple[Answer, Fault]:
        verb, revision, *_ = *parts[2:4], "", ""
        repo_id = "/".join(parts[:2])
        request.kind = "tree" if verb == "tree" else "info"

        def answer(_: Fault) -> Answer:
            moved = self._moved(request, repo_id)
            if moved is not None:
                return moved
            found = self._may(request, repo_id, listing=verb != "tree")
            if isinstance(found, Answer):
                return found
            commit = found.resolve(revision or "main")
            if commit is None:
                return answers.refusal(404, "RevisionNotFound", f"Invalid rev id: {revision}")
            if verb == "tree":
                return self._tree(request, found, commit)
            blobs = "true" in parse_qs(urlsplit(request.path).query).get("blobs", [])
            masked = bool(found.gated) and found.id not in self._hub.tokens.get(_bearer(request), ())
            return answers.told(found.info(commit, blobs=blobs, masked=masked))

        return self._hub.consult(request, answer)

    def _tree(self, request: Request, found: Repository, commit: str) -> Answer:
        rows = found.tree(commit)
        start = int(parse_qs(urlsplit(request.path).query).get("cursor", ["0"])[0])
        answer = answers.told(rows[start : start + PAGE])
        if start + PAGE < len(rows):
            path = urlsplit(request.path).path
            following = f"{self._hub.hub.url}{path}?recursive=true&expand=false&cursor={start + PAGE}"
            answer.headers["Link"] = f'<{following}>; rel="next"'
        return answer

    def _file(self, request: Request, repo_id: str, revision: str, fault: Fault) -> Answer:
        moved = self._moved(request, repo_id)
        if moved is not None:
            return moved
        found = self._may(request, repo_id, listing=False)
        if isinstance(found, Answer):
            return found
        commit = found.resolve(revision)
        if commit is None:
            return answers.refusal(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        file = found.files(commit).get(request.file)
        if file is None:
            missing = answers.refusal(404, "EntryNotFound", "Entry not found")
            missing.headers["X-Repo-Commit"] = commit
            return missing
        if file.large and not self._hub.direct:
            return self._linked(file, commit)
        return answers.bytes_of(file.content, request, file.etag, fault, X_Repo_Commit=commit)

    def _linked(self, file: File, commit: str) -> Answer:
        return answers.moved(
            self._hub.cdn.url + self._hub.links.sign(file),
            X_Repo_Commit=commit,
            X_Linked_Etag=f'"{file.sha256}"',
            X_Linked_Size=str(file.size),
            Accept_Ranges="bytes",
            Vary="Origin, Accept",
        )

    def _moved(self, request: Request, repo_id: str) -> Answer | None:
        """A renamed repository is found by its old name, by a relative redirect."""
        present = self._hub.renamed.get(repo_id)
        return answers.moved(request.path.replace(repo_id, present, 1), status=307) if present else None

    def _may(self, request: Request, repo_id: str, *, listing: bool) -> Repository | Answer:
        """The repository, or what the Hub says to who may not read it."""
        token = _bearer(request)
        if token and token not in self._hub.tokens:
            return answers.refusal(401, "", "Invalid credentials in Authorization header")
        accepted = repo_id in self._hub.tokens.get(token, ())
        found = self._hub.repositories.get(repo_id)
        if found is None or (found.private and not accepted):
            if token:
                return answers.refusal(404, "RepoNotFound", "Repository not found")
            return answers.refusal(401, "RepoNotFound", "Invalid username or password.")
        if found.gated and not accepted and not (listing and found.gated == "listed"):
            if token:
                said = f"Access to model {repo_id} is restricted and you are not in the authorized list."
                return answers.refusal(403, "GatedRepo", f"{said} Visit {self._hub.url}/{repo_id} to ask for access.")
            said = f"Access to model {repo_id} is restricted. You must have access to it and be authenticated"
            return answers.refusal(401, "GatedRepo", f"{said} to access it. Please log in.")
        return found


def _bearer(request: Request) -> str:
    return request.headers.get("authorization", "").removeprefix("Bearer ")


def _denied() -> Answer:
    said = b"<Error><Code>AccessDenied</Code><Message>Access denied</Message></Error>"
    return answers.whole(said, status=403, kind="application/xml")
