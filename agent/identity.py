"""Who this node is to the control plane: joining with an invitation, holding the credential, renewing it."""

import logging
from collections.abc import Callable
from threading import Lock
from uuid import UUID, uuid4

from agent import __version__, protocol, wire
from agent.client import Client
from agent.config import TOKEN
from agent.protocol import Code
from agent.record import StateError, is_credential
from agent.state import State
from agent.trouble import NotModelForge, NotStored, Refused
from agent.variables import Secret

log = logging.getLogger(__name__)

_TOKEN_IS_NO_GOOD = frozenset(
    {Code.TOKEN_UNKNOWN, Code.TOKEN_USED, Code.TOKEN_EXPIRED, Code.TOKEN_REVOKED, Code.NODE_HAS_CREDENTIAL}
)


class NotInvited(Exception):
    """There is neither a credential nor an enrollment token: nothing to do but to tell the operator (exit code 78)."""


class Identity:
    """The node's id, credential and invitation; safe to use from both loops.

    The credential wins over a leftover token. It is never deleted: a refusal may be an accident, and only the
    operator's word (a new invitation, ``credential set``, a replaced file) changes it.
    """

    def __init__(self, state: State, token: Secret | None, *, mint: Callable[[], UUID] = uuid4) -> None:
        self._state = state
        self._token = token
        self._token_spent = False
        self._lock = Lock()
        self._complained = False
        self._confirmed: str | None = None  # what the previous copy holds, as far as this process knows
        stored = state.node_id()
        self._credential = state.credential.recover()
        self._stamp = state.credential.stamp()
        if self._credential is None:
            _check_token(token, enrolled_before=stored is not None)
        elif token is not None and token.source in (TOKEN, f"{TOKEN}_FILE"):
            log.warning(
                "%s is set, and this node has a credential: the token is not used. Remove it from the environment.",
                token.source,
            )
        if stored is None:
            stored = mint()
            state.keep_node_id(
                stored
            )  # before anything is sent: a lost reply is healed by asking again as the same node
        self.node_id = stored

    def credential(self) -> str | None:
        """The credential as it is now; a file that was replaced from outside is noticed here, without a restart."""
        with self._lock:
            if self._changed():
                self._look_again()
            return self._credential

    def changed(self) -> bool:
        """Whether the file was replaced since it was last read."""
        with self._lock:
            return self._changed()

    def enroll(self, client: Client, *, boot_id: UUID, hostname: str, display_name: str) -> wire.Enrolled:
        """Join, or join again, with the token; the credential is stored when the answer is here. Raises ``Trouble``."""
        if self._token is None:
            raise NotInvited(_no_token())
        body = wire.Enroll(
            node_id=self.node_id,
            boot_id=boot_id,
            hostname=hostname,
            agent_version=__version__,
            display_name=display_name,
        )
        try:
            answer = client.call("POST", protocol.ENROLL, bearer=self._token.reveal(), body=body, answer=wire.Enrolled)
        except Refused as refused:
            self._token_spent = refused.code in _TOKEN_IS_NO_GOOD
            raise
        if answer.node_id != self.node_id:
            raise NotModelForge(protocol.ENROLL, "it answered for another node than the one that asked")
        self._store(answer.credential)
        self._token_spent = True
        log.info("enrolled", extra={"node_id": str(self.node_id), "display_name": answer.display_name})
        return answer

    def may_enroll_again(self, refused: Refused) -> bool:
        """Whether a revoked or unknown credential meets an invitation that was not tried yet: the operator's way to
        let this node in again."""
        return refused.of_credential and self._token is not None and not self._token_spent

    def renew(self, client: Client) -> None:
        """Ask for a new credential and store it; the old one lives until the new one is first used."""
        bearer = self.credential()
        answer = client.call("POST", protocol.CREDENTIAL, bearer=bearer, answer=wire.CredentialReply)
        self._store(answer.credential)
        log.info("credential renewed", extra={"old_dies_at": answer.old_dies_at.isoformat()})

    def accepted(self, credential: str) -> None:
        """A beat with this credential was answered: from now on it is the copy to fall back to."""
        with self._lock:
            if credential == self._confirmed or credential != self._credential:
                return
            self._confirmed = credential
            try:
                self._state.credential.confirm()
            except (OSError, StateError) as error:
                self._complain(f"the spare copy of the credential cannot be written: {error}")

    def _store(self, credential: str) -> None:
        if not is_credential(credential):
            raise NotModelForge(protocol.ENROLL, "the credential that it issued is out of shape")
        with self._lock:
            try:
                self._state.credential.keep(credential)
            except (OSError, StateError) as error:
                raise NotStored(f"a credential was issued and cannot be stored: {error}") from error
            self._credential = credential
            self._stamp = self._state.credential.stamp()

    def _changed(self) -> bool:
        return self._state.credential.stamp() != self._stamp

    def _look_again(self) -> None:
        """Take a replaced credential; keep the one in memory while the file is gone, unreadable or half written."""
        record = self._state.credential
        self._stamp = record.stamp()  # before reading: what is written meanwhile is seen by the next look
        try:
            found = record.peek()
        except StateError as error:
            self._complain(str(error))
            return
        if found is None:
            self._complain(f"{record.path} is gone or damaged; this agent goes on with the credential that it holds")
            return
        self._complained = False
        if found != self._credential:
            self._credential = found
            log.info("a replaced credential was found and is used from now on")

    def _complain(self, text: str) -> None:
        if not self._complained:
            log.warning("%s", text)
            self._complained = True


def _no_token() -> str:
    return (
        f"This node has no credential yet, and {TOKEN} (or {TOKEN}_FILE) is not set. Create an enrollment token on the "
        "control plane (Compute nodes, Enroll node) and set it."
    )


def _check_token(token: Secret | None, *, enrolled_before: bool) -> None:
    if token is None:
        hint = " Its id is kept and will be used again." if enrolled_before else ""
        raise NotInvited(_no_token() + hint)
    text = token.reveal()
    if not (text.startswith("mfe_") and text.isascii() and text.isprintable()) or " " in text:
        source = token.source or TOKEN
        raise NotInvited(f"{source} holds no enrollment token: one starts with mfe_ and has no blanks. Copy it whole.")
