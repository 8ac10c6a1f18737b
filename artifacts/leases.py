"""When a lease ends, how long a job that failed pauses, and when its attempts are spent."""
