"""The node agent: it knows this server, tells the control plane over outbound HTTPS, and ships alone."""

__version__ = "0.1.0"
