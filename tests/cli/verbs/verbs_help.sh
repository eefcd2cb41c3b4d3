#!/usr/bin/env bash
# agentwal: help, suggestions, errors as JSON, and the files made from the table.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/cli.sh"
cd "$work"
export AGENTWAL_STORE=$store HOME=$work

agentwal help --json >table
mapfile -t verbs < <(python3 -c '
import json
for line in open("table"):
    row = json.loads(line)
    if row["verb"]:
        print(row["verb"])
        assert row["summary"] and row["usage"] is not None, row
        assert 1 < len(row["examples"]) < 4, row
        for example in row["examples"]:
            assert example["command"] and example["text"], row
')
[ "${#verbs[@]}" -gt 30 ] || fail "only ${#verbs[@]} verbs"

# Every verb has help; --help and help print the same. No line is too long.
agentwal >overview
agentwal help >other
cmp overview other
sed -n '/^Every day:/,/^$/s/^  \([a-z]\{1,\}\) .*/\1/p' overview | sort | paste -sd ' ' >daily
same 'adopt cat fork list resume rewind search serve usage watch' "$(cat daily)" \
    "the verbs of every day"
for verb in "${verbs[@]}"; do
    grep -q "^  $verb  *[A-Z]" overview || fail "the overview lacks $verb"
    agentwal "$verb" --help >one
    agentwal help "$verb" >other
    cmp one other || fail "two kinds of help of $verb"
    head -1 one | grep -q "^Usage: agentwal $verb" || fail "usage of $verb"
    grep -q '^Examples:' one || fail "no examples of $verb"
    awk -v verb="$verb" 'length($0) > 80 {print verb ": " $0; bad = 1}
        END {exit bad}' one || fail "help of $verb is too wide"
done
code 0 agentwal --version
code 2 agentwal --json

# Every option in the help is accepted by the verb, and no other one.
python3 - <<'PYTHON'
import json, os, re, subprocess
stride = int(os.environ.get("AGENTWAL_STRIDE", "1"))
rows = [json.loads(line) for line in open("table")]
common = rows.pop()["options"]
for number, row in enumerate(rows):
    known = set(re.findall(r"--[a-z][a-z-]*", " ".join(
        o["option"] for o in row["options"] + common)))
    usage = set(re.findall(r"--[a-z][a-z-]*", row["usage"]))
    assert usage <= known, (row["verb"], usage - known)
    for option in sorted(known - {"--help", "--version"})[number % stride::stride]:
        run = subprocess.run(["agentwal", row["verb"], option + "=1", "--none"],
                             capture_output=True, text=True)
        assert option + "=1: no such option" not in run.stderr, (row, option)
PYTHON

# Suggestions.
suggests() {
    local expected=$1
    shift
    code 2 "$@"
    grep -q "did you mean $expected?" stderr || fail "$*: $(cat stderr)"
}
suggests list agentwal lsit
suggests checkpoint-delete agentwal checkpoint-delet
suggests import agentwal improt
suggests --limit agentwal list --limt 3
suggests --text agentwal cat x --txet
suggests list agentwal lst x
suggests export agentwal exprot x
suggests --branch walcat --brnach x
suggests --salvage walcheck --salvge x
suggests list agentwal ls
suggests delete agentwal rm
suggests search agentwal grep
suggests cat agentwal log
suggests checkpoint-diff agentwal diff
suggests title agentwal rename
code 2 agentwal zzzzzz
grep -q 'did you mean' stderr && fail "a suggestion that is not near"
code 2 agentwal push
grep -q 'did you mean remote push?' stderr || fail "$(cat stderr)"
code 0 agentwal help remote push
code 2 agentwal help remote pushed
code 2 agentwal help push
code 2 agentwal help lsit

# Errors are one JSON object with --json, on standard error.
failure() {
    local status=$1 expected=$2
    shift 2
    code "$expected" "$@"
    json "len(rows) == 1 and rows[0]['error']['status'] == '$status' \
        and rows[0]['error']['exitCode'] == $expected \
        and rows[0]['error']['why'] != ''" stderr
}
failure WAL_ENOTSTORE 3 agentwal list --json
agentwal create --id one 2>/dev/null >/dev/null
failure WAL_ENOTFOUND 1 agentwal show --json none
failure usage 2 agentwal show --json
failure usage 2 agentwal --json nosuch
failure usage 2 agentwal list --nosuch --json
failure usage 2 agentwal cat one --text --json
failure WAL_EEXISTS 1 agentwal create --json --id one
code 1 agentwal append one --json --expect-tail x \
    <<<'{"type":"t","payload":{}}'
json 'rows[0]["conflict"]["expected"] == "x"' stdout
json 'rows[0]["error"]["status"] == "WAL_ECONFLICT"' stderr
# The names say what they were called by.
code 1 walcat "$store" none
grep -q '^walcat: none: no such session' stderr || fail "error of walcat"
failure WAL_ENOTFOUND 1 walcat --json "$store" none

# One sentence for a directory that is gone.
mkdir gone
agentwal create --id gone --cwd gone >/dev/null
rmdir gone
code 1 agentwal checkpoint gone before file
same "agentwal: $work/gone: opening the root directory failed: No such file or directory" \
    "$(cat stderr)" "the error of a missing directory"
