"""Who signed a certificate that we do not trust, read from its DER bytes, so that an error can name the CA."""

import ssl
from dataclasses import dataclass

_SEQUENCE, _SET, _OID, _CONTEXT_0 = 0x30, 0x31, 0x06, 0xA0
_COMMON_NAME, _ORGANISATION = bytes((0x55, 0x04, 0x03)), bytes((0x55, 0x04, 0x0A))


@dataclass(frozen=True)
class Element:
    """One tag-length-value of DER."""

    tag: int
    value: bytes


def elements(data: bytes) -> list[Element]:
    """The elements that ``data`` is made of; ValueError where it is no DER."""
    found = []
    at = 0
    while at < len(data):
        if at + 2 > len(data):
            raise ValueError("cut short")
        tag, length, at = data[at], data[at + 1], at + 2
        if length & 0x80:
            size = length & 0x7F
            length, at = int.from_bytes(data[at : at + size], "big"), at + size
        if at + length > len(data):
            raise ValueError("cut short")
        found.append(Element(tag, data[at : at + length]))
        at += length
    return found


def issuer(der: bytes) -> str:
    """The issuer's common name, else its organisation, else ""; for an error's text, never for a decision."""
    try:
        (certificate,) = elements(der)
        signed = elements(elements(certificate.value)[0].value)
        fields = signed[1:] if signed[0].tag == _CONTEXT_0 else signed  # an explicit version stands first
        names = {}
        for group in elements(fields[2].value):  # serial number, algorithm, issuer
            for attribute in elements(group.value):
                kind, value = elements(attribute.value)
                names[kind.value] = value.value.decode("utf-8", errors="replace")
    except (ValueError, IndexError):
        return ""
    name = names.get(_COMMON_NAME) or names.get(_ORGANISATION) or ""
    return "".join(char for char in name if char.isprintable())[:120]


def issuer_at(host: str, port: int, *, timeout: float) -> str:
    """Ask a server for its certificate (sending it nothing) and say who issued it; "" where that cannot be found."""
    try:
        pem = ssl.get_server_certificate((host, port), timeout=timeout)
    except (OSError, ValueError):
        return ""
    return issuer(ssl.PEM_cert_to_DER_cert(pem))
