#!/usr/bin/env bash
# Runs in LocalStack's container when it is ready, with this repository mounted at /opt/shardcron: deploys the stack
# from the zips that `infra/package` has built. Where there are none it does nothing; localstack/deploy does it then.
set -euo pipefail

root=${SHARDCRON_ROOT:-/opt/shardcron}
state=$(mktemp -d)
stack=shardcron
ARTIFACTS=shardcron-artifacts
trap 'rm -rf "$state"' EXIT
export AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1 AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test
export AWS_ENDPOINT_URL=${AWS_ENDPOINT_URL:-http://localhost:4566}

aws() {
    awslocal "$@"
}

die() {
    echo "ready.d/deploy.sh: $*" >&2
    exit 1
}

case $(uname -m) in
x86_64) architecture=x86_64 ;;
*) architecture=arm64 ;;
esac
packages=$root/target/package/$architecture
if [[ ! -f $packages/planner.zip ]]; then
    echo "nothing is deployed: there is no $packages/planner.zip; run infra/package $architecture, or localstack/deploy"
    exit 0
fi

# shellcheck source=localstack/stack.sh
source "$root/localstack/stack.sh"
deploy_stack "$packages" "$architecture"
use_stack
seed_flights
echo "$stack is deployed, with the job flights"
