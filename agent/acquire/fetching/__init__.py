"""Brings the bytes of a plan over many connections, each byte hashed once."""
