#!/usr/bin/env bash
# What a copy of a session of 20 MB costs in the store, by kind of lines and of
# copy: docs/engine/copies.md has the table that this prints.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/cli.sh"

maker=$(dirname "${BASH_SOURCE[0]}")/../../lib/session_copy.py
in=$work/in
bytes=$((20000000 / ${AGENTWAL_STRIDE:-1}))

log_bytes() {
    agentwal --store "$store" stats --json | field logBytes
}

# kind WHAT STYLE WORDS MOST [time]: a copy costs at most MOST thousandths of
# its bytes, and is exported with the same bytes.
kind() {
    local what=$1 style=$2 words=$3 most=$4 before cost size lines
    rm -rf "$store" "$in" "$work/out"
    mkdir "$in"
    python3 "$maker" make "$style" "$bytes" 1 "$in/a.jsonl" "$words"
    python3 "$maker" copy "$style" 2 "$in/a.jsonl" "$in/b.jsonl"
    [ $# -lt 5 ] || python3 "$maker" "$5" "$style" 3 "$in/b.jsonl"
    agentwal --store "$store" init
    agentwal --store "$store" import "$in/a.jsonl" >/dev/null
    before=$(log_bytes)
    agentwal --store "$store" import --json "$in/b.jsonl" >"$work/rows"
    json 'rows[0]["appended"] <= 1 and
        rows[0]["shared"] + rows[0]["appended"] == rows[0]["lines"]' \
        "$work/rows"
    cost=$(($(log_bytes) - before))
    size=$(stat -c %s "$in/b.jsonl")
    lines=$(field lines "$work/rows")
    printf '%-40s %6d bytes a line %8d bytes %3d.%02d %%\n' "$what" \
        $((size / lines)) "$cost" $((cost * 100 / size)) \
        $((cost * 10000 / size % 100))
    [ $((cost * 1000)) -le $((size * most)) ] ||
        fail "$what: $cost of $size bytes, more than $most thousandths"
    agentwal --store "$store" export --dialect source "$work/out" >/dev/null
    diff -r "$in" "$work/out" || fail "$what: the export differs"
    # A compaction stores the lines in blocks.
    rm -r "$work/out"
    agentwal --store "$store" gc >/dev/null
    agentwal --store "$store" export --dialect source "$work/out" >/dev/null
    diff -r "$in" "$work/out" || fail "$what: the export differs after gc"
}

kind 'claude, long lines' claude 750 10
kind 'claude, lines of the usual median' claude 120 35
kind 'claude, short lines' claude 40 50
kind 'codex, the same bytes' codex 120 10
kind 'codex, other times' codex 120 15 time
kind 'pi, the same bytes' pi 120 10
