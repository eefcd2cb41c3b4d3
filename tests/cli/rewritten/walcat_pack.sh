#!/usr/bin/env bash
# What walcat --frames shows of a pack that was compacted: the log before the
# pack, every CHUNK and BLOB after its BLOCK, with the digests that the segments
# had before, also of one segment file; and a BLOCK that is damaged.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/cli.sh"
export AGENTWAL_STORE=$store

# append SESSION SEED SIZE: an entry whose payload is a blob.
append() {
    python3 -ISc '
import json, random, sys
random.seed(int(sys.argv[1]))
text = "".join(random.choices("abcdefgh", k=int(sys.argv[2])))
print(json.dumps({"id": "e" + sys.argv[1], "type": "message",
                  "payload": {"role": "user", "content": text}}))
' "$2" "$3" | agentwal append "$1" >"$work/appended"
}

# contents FILE: digest, size and encoding of each record of the pack.
contents() {
    python3 -ISc '
import json, sys
for line in sys.stdin:
    row = json.loads(line)
    if row.get("type") in ("CHUNK", "BLOB"):
        print(row["digest"], row["contentSize"], row.get("encoding"),
              row.get("chunkCount"))' <"$1" | sort
}

agentwal init
for session in kept gone; do
    agentwal create --id $session >"$work/made"
done
append kept 1 300000
append kept 2 3000000 # more than one chunk
append gone 3 400000
for i in 1 2 3 4 5; do
    mkdir -p "$work/tree"
    echo "file $i" >"$work/tree/f$i"
    agentwal checkpoint kept "c$i" --root "$work/tree" "f$i" >"$work/made"
done
code 0 walcat --frames --json "$store"
cp "$work/stdout" "$work/before"
json 'not any("block" in r for r in rows)' "$work/before"
delete_session "$store" gone
code 0 agentwal --store "$store" gc --erase
gone=$(contents "$work/before" | grep ' 400[0-9]* ')

code 0 walcat --frames --json "$store"
json 'sum("generation" in r and r["file"].startswith("pack/") for r in rows) == 1
      and rows[0]["file"].startswith("log/")
      and rows[-1]["file"].startswith("pack/")' "$work/stdout"
json 'all(sum(r.get("block") == b["offset"] and r["file"] == b["file"] for r in rows)
          == b["records"] for b in rows if b.get("type") == "BLOCK")' "$work/stdout"
json 'sum(r.get("type") == "BLOCK" and r["file"].startswith("pack/") and r["records"] > 1
          for r in rows) > 0' "$work/stdout"
json 'all(r["block"] <= r["offset"] < r["block"] + 512 and r["state"] == "ok"
          for r in rows if r.get("type") in ("CHUNK", "BLOB"))' "$work/stdout"
contents "$work/before" | grep -vF "$gone" >"$work/expected"
contents "$work/stdout" >"$work/actual"
same "$(cat "$work/expected")" "$(cat "$work/actual")" "the contents"

# For people, and of one file.
pack=$(find "$store/pack" -name '*.seg' | sort | head -n 1)
code 0 walcat --frames "$pack"
grep -q '^rewritten  generation 1  first id 1 ' "$work/stdout" || fail "no header"
grep -q ' BLOCK .* ok  records [0-9]*$' "$work/stdout" || fail "no BLOCK"
same "$(grep -c '' "$work/expected")" \
    "$(grep -Ec '^ *[0-9]+ - (CHUNK|BLOB) .* ok  sha256 [0-9a-f]{64}  size ' \
        "$work/stdout")" "the records"

# A damaged BLOCK has no records, and the others are shown.
code 0 walcat --frames --json "$pack"
python3 -ISc '
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
block = next(r for r in rows if r.get("type") == "BLOCK")
with open(sys.argv[2], "r+b") as file:
    file.seek(block["offset"] + 48 + 20)
    byte = file.read(1)[0]
    file.seek(-1, 1)
    file.write(bytes([byte ^ 1]))
print(block["offset"])' "$work/stdout" "$pack" >"$work/offset"
cp "$work/stdout" "$work/sound"
code 0 walcat --frames --json "$pack"
json "any(r['offset'] == $(cat "$work/offset") and r['state'] == 'data crc'
          for r in rows if 'offset' in r)" "$work/stdout"
json "not any(r.get('block') == $(cat "$work/offset") for r in rows)" "$work/stdout"
same "$(grep -c '"block"' "$work/sound")" \
    "$(($(grep -c '"block"' "$work/stdout") + \
        $(grep -c "\"block\":$(cat "$work/offset")," "$work/sound")))" \
    "the records that are left"
