"""The registry's pages: the node list and the nodes' pages, and the audit list."""

from nodes.admin.audit_list import AuditEventAdmin
from nodes.admin.node_list import NodeAdmin

__all__ = ["AuditEventAdmin", "NodeAdmin"]
