"""One line of what the doctor finds."""

from dataclasses import dataclass
from typing import Literal

from agent.logs import redact

EXIT_OK, EXIT_UNREACHABLE, EXIT_CONFIG = 0, 69, 78


@dataclass(frozen=True)
class Finding:
    """Whether something is in order, and what to do where it is not."""

    level: Literal["ok", "warn", "FAIL"]
    subject: str
    text: str
    exit_code: int = EXIT_OK

    def __str__(self) -> str:
        return redact(f"{self.level:<4}  {self.subject:<17} {self.text}")
