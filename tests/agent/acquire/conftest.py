"""A stand-in Hub for one test of the agent's acquisition."""

from tests.hub.conftest import hub

__all__ = ["hub"]
