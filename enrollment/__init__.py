"""How nodes, people and scripts come to be trusted: invitations, credentials, keys, and the doors that check them."""
