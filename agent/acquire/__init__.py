"""Brings a snapshot into a storage root: plan, guard, fetch, verify, publish."""
