"""Carries connections out of a container's network to servers that listen on this machine's loopback alone.

Two halves meet at Unix sockets in a folder, one for each port: ``Relay`` here, and this file as a container's program.
"""

import contextlib
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path

PIECE = 65536


def serve(listener: socket.socket, dial: Callable[[], socket.socket]) -> None:
    """Carry each connection that comes onward, until the listener is closed."""
    with contextlib.suppress(OSError):
        while True:
            taken, _ = listener.accept()
            threading.Thread(target=_carry, args=(taken, dial), daemon=True).start()


def _carry(taken: socket.socket, dial: Callable[[], socket.socket]) -> None:
    with taken, contextlib.suppress(OSError), dial() as onward:
        back = threading.Thread(target=_pump, args=(onward, taken), daemon=True)
        back.start()
        _pump(taken, onward)
        back.join()


def _pump(source: socket.socket, target: socket.socket) -> None:
    """All that comes; the end of one side is the end of the other."""
    with contextlib.suppress(OSError):
        while piece := source.recv(PIECE):
            target.sendall(piece)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def unix(path: Path) -> socket.socket:
    """Connected to the socket by that name."""
    made = socket.socket(socket.AF_UNIX)
    try:
        made.connect(str(path))
    except OSError:
        made.close()
        raise
    return made


class Relay:
    """This machine's half."""

    def __init__(self, folder: Path, ports: list[int]) -> None:
        self._listeners = [self._listen(folder, port) for port in ports]

    def close(self) -> None:
        """No new connections."""
        for listener in self._listeners:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()

    @staticmethod
    def _listen(folder: Path, port: int) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(folder / str(port)))
        listener.listen(64)
        dial = lambda: socket.create_connection(("127.0.0.1", port))  # noqa: E731
        threading.Thread(target=serve, args=(listener, dial), daemon=True).start()
        return listener


def main(folder: Path, ports: list[int]) -> None:
    """The container's half."""
    threads = []
    for port in ports:
        listener = socket.create_server(("0.0.0.0", port), backlog=64)  # noqa: S104 - its own network's
        dial = lambda path=folder / str(port): unix(path)  # noqa: E731
        threads.append(threading.Thread(target=serve, args=(listener, dial)))
    for thread in threads:
        thread.start()


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(port) for port in sys.argv[2:]])
