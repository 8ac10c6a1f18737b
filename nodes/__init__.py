"""The registry: nodes, what they consist of, whether they are heard, and the history of it all."""
