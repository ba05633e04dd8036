#!/usr/bin/env bash
# Makes the input of docs/performance.md: copies of gzipped CSV files, as plain CSV, and a job for them.
#
#   docs/bench/flights.sh DIR [FILE.csv.gz...]
#
# Without files: the example's month. COPIES says how many copies there are of each file (48 divided by the number of
# files, unless set), SHARD_BYTES how many bytes a shard aims at (8 MiB, unless set).
set -euo pipefail

if (($# < 1)); then
    sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
dir=$1
shift
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
(($#)) || set -- "$here/../../examples/flights/data/2013-01.csv.gz"
copies=${COPIES:-$((48 / $#))}
shard_bytes=${SHARD_BYTES:-8388608}

mkdir -p "$dir/data"
for file in "$@"; do
    name=$(basename "$file" .csv.gz)
    first=$dir/data/$name-001.csv
    gzip -dc "$file" >"$first"
    for ((number = 2; number <= copies; number++)); do
        cp "$first" "$dir/data/$name-$(printf %03d "$number").csv"
    done
done

cat >"$dir/job.json" <<JOB
{
  "name": "flights-bench",
  "schedule": "0 6 * * *",
  "timeZone": "America/New_York",
  "input": { "objects": "data/", "format": "csv", "nulls": ["", "NA"] },
  "shards": { "targetBytes": $shard_bytes },
  "work": {
    "aggregate": { "groupBy": ["origin", "carrier"], "count": true, "sum": ["distance", "arr_delay"] }
  },
  "output": { "objects": "out/", "format": "csv" }
}
JOB

records=$(find "$dir/data" -name '*.csv' -exec awk 'END { print NR - 1 }' {} \; | awk '{ sum += $1 } END { print sum }')
bytes=$(find "$dir/data" -name '*.csv' -printf '%s\n' | awk '{ sum += $1 } END { print sum }')
echo "$dir: $(find "$dir/data" -name '*.csv' | wc -l) files, $records records, $bytes bytes; the job is $dir/job.json"
