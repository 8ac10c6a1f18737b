"""Whom the agent believes on the way: one TLS context for the control plane, one for the Hub."""

import ssl

from agent.config import Link


def trust(link: Link) -> ssl.SSLContext:
    """Whom to believe: the system's store (SSL_CERT_FILE honoured), or only the CA that the operator named."""
    context = ssl.create_default_context(cafile=str(link.ca_file) if link.ca_file else None)
    if link.ca_file:
        # Self-made CAs often lack the extensions that strict checking (Python 3.13's default) asks for, and people
        # install an intermediate or the server's own certificate; both name exactly whom they trust.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if not link.tls_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
