"""Where `make up` listens, and whether it may; standard library only: asked before anything is installed."""

import os
import socket
import sys
from typing import NoReturn


def fail(text: str, code: int = 1) -> NoReturn:
    """What is wrong and what to do, and no traceback."""
    sys.stderr.write(f"\n{text}\n")
    sys.exit(code)


def free() -> tuple[str, int]:
    """HOST and PORT, and nobody listens there yet."""
    host, text = os.environ.get("HOST") or "127.0.0.1", os.environ.get("PORT") or "8000"
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 65536:
        fail(f"PORT is {text!r}; say a number from 1 to 65535, such as: make up PORT=8001")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, int(text)))
        except PermissionError:
            fail(f"Port {text} may only be opened by root. Choose one from 1024 on: make up PORT=8000")
        except OSError as fault:
            remedy = f"Stop what listens there, or choose another port: make up PORT={int(text) + 1}"
            fail(f"Port {text} on {host} cannot be opened: {fault.strerror or fault}.\n{remedy}")
    return host, int(text)


def name(host: str) -> str:
    """The host to put into an address that is opened on this machine."""
    if host in {"0.0.0.0", "::"}:  # noqa: S104 - compared, not bound
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host
