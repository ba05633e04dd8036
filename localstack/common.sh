# What the scripts beside this file share. Sourced by bash; sets `root`, `state` and functions.
# shellcheck shell=bash

set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
script=localstack/$(basename "$0")
# Where the server's files, its environment and the stack's are. Another directory is another server.
state=${SHARDCRON_LOCALSTACK_DIR:-$root/target/localstack}
stack=${SHARDCRON_STACK:-shardcron}
port=${LOCALSTACK_PORT:-4566}

# What any stand-in takes; never the credentials of an account.
export AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1
export AWS_CONFIG_FILE=/dev/null AWS_SHARED_CREDENTIALS_FILE=/dev/null AWS_PAGER='' AWS_EC2_METADATA_DISABLED=true
unset AWS_PROFILE AWS_SESSION_TOKEN AWS_ENDPOINT_URL_S3 AWS_ENDPOINT_URL_LAMBDA

die() {
    echo "$script: $*" >&2
    exit 1
}

# The Python environment with MiniStack and the AWS CLI, made anew when the pins have changed.
venv() {
    local venv=$state/venv python
    if ! cmp -s "$here/requirements.txt" "$venv/installed"; then
        python=$("$here/python") || die "Python is needed for MiniStack and the AWS CLI"
        mkdir -p "$state"
        rm -rf "$venv"
        "$python" -m venv "$venv"
        "$venv/bin/pip" install --quiet --disable-pip-version-check --no-input -r "$here/requirements.txt" >&2 ||
            die "pip couldn't install localstack/requirements.txt; is PyPI reachable?"
        cp "$here/requirements.txt" "$venv/installed"
    fi
    echo "$venv"
}

# Whether LocalStack, or what has its paths, answers at an endpoint.
answers() {
    "$(venv)/bin/python" - "$1" <<'PY' 2>/dev/null
import sys, urllib.request
urllib.request.build_opener(urllib.request.ProxyHandler({})).open(sys.argv[1] + "/_localstack/health", timeout=2).read()
PY
}

# Whether somebody listens on a port of 127.0.0.1.
taken() {
    (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

# Whether the process that `up` has started is still there: its number may be another's by now.
is_ours() {
    [[ -f $state/server.pid ]] && ps -o command= -p "$(<"$state/server.pid")" | grep -q ministack
}

# The endpoint: AWS_ENDPOINT_URL, or the one that `up` has written down.
endpoint() {
    if [[ -n ${AWS_ENDPOINT_URL:-} ]]; then
        echo "$AWS_ENDPOINT_URL"
    elif [[ -f $state/endpoint ]]; then
        cat "$state/endpoint"
    else
        die "nothing is up; run localstack/up first, or set AWS_ENDPOINT_URL"
    fi
}

# The AWS CLI, at the endpoint that `use_endpoint` has chosen.
aws() {
    "$aws" "$@"
}

# Chooses the endpoint and the AWS CLI for the rest of the script.
use_endpoint() {
    AWS_ENDPOINT_URL=$(endpoint)
    export AWS_ENDPOINT_URL
    # In LocalStack's own container there is `awslocal`; it needs no environment of ours.
    aws=${SHARDCRON_AWS:-$(venv)/bin/aws}
    answers "$AWS_ENDPOINT_URL" || die "$AWS_ENDPOINT_URL doesn't answer; run localstack/up"
}

# Of which kind the server is that `up` has started: ministack or docker.
kind() {
    cat "$state/kind" 2>/dev/null || echo unknown
}
