# `make check`: every tool speaks, even after one that complained; the exit code is 1 if any did.

failed=""

step() {
    name=$1
    shift
    if output=$("$@" 2>&1); then
        echo "ok    $name"
    else
        echo "FAIL  $name"
        echo "$output" | tail -n 40
        failed="$failed $name"
    fi
}

step format ruff format --check .
step lint ruff check .
step types mypy .
step floors lint-imports
step migrations python manage.py makemigrations --check --dry-run
step django python manage.py check --fail-level WARNING
step schema python manage.py spectacular --validate --fail-on-warn --file /dev/null
step locks python -m modelforge.lock --check

rm -rf "$MODELFORGE_VAR_DIR"
if [ -n "$failed" ]; then
    echo "Not in order:$failed"
    exit 1
fi
