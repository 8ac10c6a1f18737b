"""The pages of trust: enrollment tokens, node credentials, API keys, people."""

from enrollment.admin.credentials import NodeCredentialAdmin
from enrollment.admin.keys import ApiKeyAdmin
from enrollment.admin.people import PersonAdmin
from enrollment.admin.tokens import EnrollmentTokenAdmin

__all__ = ["ApiKeyAdmin", "EnrollmentTokenAdmin", "NodeCredentialAdmin", "PersonAdmin"]
