"""How a node, a person or a script comes to be trusted: invitations, credentials, keys, and the doors that check them."""
