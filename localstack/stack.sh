# The stack: deployed from zips, described, and given its example. Sourced by `deploy`, which builds the zips, and by
# the hook in LocalStack's container, which finds them mounted. Wants `aws`, `die`, `root`, `state` and `stack`.
# shellcheck shell=bash

# Deploys the template with the zips in this directory, for this architecture, with parameters on top of the defaults.
deploy_stack() {
    local packages=$1 architecture=$2 function
    shift 2
    # All that is changed of the template is where the code is, which `sam build` and `aws cloudformation package` do too.
    local code=()
    for function in planner fanout shard; do
        [[ -f $packages/$function.zip ]] || die "there is no $packages/$function.zip; infra/package makes it"
        code+=(-e "s|^\( *CodeUri:\) \.\./functions/$function\$|\1 $packages/$function.zip|")
    done
    sed "${code[@]}" "$root/infra/template.yaml" >"$state/template.yaml"
    [[ $(grep -c "CodeUri: $packages/" "$state/template.yaml") == 3 ]] ||
        die "infra/template.yaml doesn't name the code of the three functions as expected"
    aws s3api head-bucket --bucket "$ARTIFACTS" >/dev/null 2>&1 ||
        aws s3api create-bucket --bucket "$ARTIFACTS" >/dev/null
    if ! aws cloudformation package --template-file "$state/template.yaml" --s3-bucket "$ARTIFACTS" \
        --output-template-file "$state/packaged.yaml" >"$state/deploy.log" 2>&1; then
        tail -n 5 "$state/deploy.log" >&2
        die "the functions' code couldn't be uploaded; the reason is above"
    fi
    # The stand-ins can't make alarms that compute; all else of the template is as on AWS.
    if ! aws cloudformation deploy --stack-name "$stack" --template-file "$state/packaged.yaml" \
        --capabilities CAPABILITY_IAM --no-fail-on-empty-changeset \
        --parameter-overrides "Architecture=$architecture" MathAlarms=false "$@" >"$state/deploy.log" 2>&1; then
        cat "$state/deploy.log" >&2
        aws cloudformation describe-stack-events --stack-name "$stack" --output text --query \
            "StackEvents[?contains(ResourceStatus, 'FAILED')].[LogicalResourceId, ResourceStatusReason]" >&2 || true
        die "the stack $stack wasn't deployed; the reasons are above"
    fi
}

# Reads the stack's outputs, for this script and for `env`.
use_stack() {
    local outputs name key value
    outputs=$(aws cloudformation describe-stacks --stack-name "$stack" --output text \
        --query 'Stacks[0].Outputs[].[OutputKey, OutputValue]')
    {
        for name in AWS_ENDPOINT_URL AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_REGION AWS_DEFAULT_REGION; do
            printf 'export %s=%q\n' "$name" "${!name}"
        done
        printf 'export SHARDCRON_STACK=%q\n' "$stack"
        while read -r key value; do
            case $key in
            Table) name=SHARDCRON_TABLE ;;
            State) name=SHARDCRON_STATE ;;
            Bucket) name=SHARDCRON_BUCKET ;;
            QueueInstances) name=SHARDCRON_QUEUE_INSTANCES ;;
            QueueShards) name=SHARDCRON_QUEUE_SHARDS ;;
            QueueBackfillShards) name=SHARDCRON_QUEUE_BACKFILL_SHARDS ;;
            EventBus) name=SHARDCRON_EVENT_BUS ;;
            PlannerFunction) name=SHARDCRON_PLANNER_FUNCTION ;;
            ShardFunction) name=SHARDCRON_SHARD_FUNCTION ;;
            *) continue ;;
            esac
            printf 'export %s=%q\n' "$name" "$value"
        done <<<"$outputs"
    } >"$state/stack.env"
    # shellcheck source=/dev/null
    source "$state/stack.env"
}

# Uploads the example's month, and writes its job with the bucket's places to flights.json.
upload_flights() {
    local file
    for file in "$root"/examples/flights/data/*; do
        aws s3 cp --only-show-errors "$file" "s3://$SHARDCRON_BUCKET/input/flights/$(basename "$file")"
    done
    sed -e "s|\"data/\"|\"s3://$SHARDCRON_BUCKET/input/flights/\"|" -e "s|\"out/\"|\"s3://$SHARDCRON_BUCKET/output/\"|" \
        "$root/examples/flights/job.json" >"$state/flights.json"
}

# The same, and applies the job by the planner function.
seed_flights() {
    upload_flights
    printf '{ "command": "apply", "spec": %s }\n' "$(<"$state/flights.json")" >"$state/apply.json"
    local fault
    fault=$(aws lambda invoke --function-name "$SHARDCRON_PLANNER_FUNCTION" --payload "fileb://$state/apply.json" \
        --query FunctionError --output text "$state/apply.answer")
    [[ $fault == None ]] || die "the planner refused the job flights: $(<"$state/apply.answer")"
}
