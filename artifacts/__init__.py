"""Models on servers: storage roots, the jobs that fill them, and what lies in them, whole and verified."""
