"""The registry's tables: nodes, their heartbeats and boots, accelerators, volumes, samples, and the history."""

from nodes.models.hardware import Accelerator, TelemetrySample, Volume
from nodes.models.hearing import LIVENESS, BootSession, Heartbeat
from nodes.models.history import AuditEvent, AuditHead
from nodes.models.nodes import CredentialState, Node
from nodes.models.plane import ControlPlane, IdempotentAnswer

__all__ = [
    "LIVENESS",
    "Accelerator",
    "AuditEvent",
    "AuditHead",
    "BootSession",
    "ControlPlane",
    "CredentialState",
    "Heartbeat",
    "IdempotentAnswer",
    "Node",
    "TelemetrySample",
    "Volume",
]
