#!/usr/bin/env bash
# Bash completion of agentwal and its names: verbs, options, stores, sessions;
# what zsh and fish complete; the man page.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/cli.sh"
_agentwal_common='' _agentwal_verbs='' # set by the completion script
# shellcheck source=tools/completion/agentwal
. "$AGENTWAL_SOURCE/tools/completion/agentwal"

# offers LINE WORD...: the completions at the end of LINE are exactly these, in
# any order.
offers() {
    local line=$1
    shift
    # shellcheck disable=SC2034  # read by the completion
    COMP_LINE=$line COMP_POINT=${#line}
    read -r -a COMP_WORDS <<<"${line//:/ : }"
    case $line in
    *' ' | *:) COMP_WORDS+=('') ;;
    esac
    # shellcheck disable=SC2034
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    COMPREPLY=(untouched)
    _agentwal "${COMP_WORDS[0]}" "${COMP_WORDS[-1]}" ''
    printf '%s\n' "$@" | sort >"$work/expected"
    printf '%s\n' "${COMPREPLY[@]}" | sort >"$work/got"
    diff "$work/expected" "$work/got" >&2 || fail "completions of '$line'"
}

cd "$work"
mkdir stores
agentwal --store stores/one init
agentwal --store stores/other init
export AGENTWAL_STORE=$work/stores/one HOME=$work
for id in alpha beta alpine-2 "with:colon" "with blank"; do
    agentwal create --id "$id" >/dev/null
done
printf 'text\n' >file
agentwal checkpoint alpha first --root . file >/dev/null
agentwal checkpoint alpha second --root . file >/dev/null

offers 'agentwal l' list latest
offers 'agentwal chec' check checkpoint checkpoints checkpoint-show \
    checkpoint-diff checkpoint-delete checkpoint-export checkpoint-import \
    checkpointing
offers 'agentwal show al' alpha alpine-2
offers 'agentwal show ' @latest alpha beta alpine-2 with:colon
offers 'agentwal show with:c' colon
offers 'agentwal show alpha '
offers "$WALBIN/agentwal show be" beta
offers 'agentwal --json tree al' alpha alpine-2
offers 'agentwal fork --at x b' beta
offers 'agentwal append alpha --e' --each --expect-tail
offers 'agentwal append alpha --durability ' durable written queued cluster
offers 'agentwal resume alpha --in co' codex copilot
offers 'agentwal delete alpha be' beta
for entry in e1 e2 other; do
    printf '{"id":"%s","type":"note","payload":1}\n' "$entry" | agentwal append beta >/dev/null
done
offers 'agentwal fork beta --at e' e1 e2
offers 'agentwal cat beta --up-to o' other
offers 'agentwal fork --at ' ''
offers 'agentwal doc get beta --at ' ''
offers 'agentwal search --role t' title tool
offers 'agentwal rewind alpha f' first
offers 'agentwal rewind alpha first --e' --expect
offers 'agentwal checkpoint-diff alpha first s' second
offers 'agentwal checkpoint alpha third fi' file
offers 'agentwal checkpoint --root st' stores
offers 'agentwal checkpointing alpha ' on off
offers 'agentwal checkpoint-export alpha --layout ' sdk spec11
offers 'agentwal checkpoint-import alpha st' stores
offers 'agentwal doc g' get
offers 'agentwal doc get al' alpha alpine-2
offers 'agentwal doc get --store ' @latest alpha beta alpine-2 with:colon
offers 'agentwal project st' stores
offers 'agentwal import --dialect c' claude codex copilot cursor
offers 'agentwal import --dialect a' antigravity auto
offers 'agentwal export --dialect c' claude codex copilot
offers 'agentwal import --dialect o' opencode
offers 'agentwal import fi' file
offers 'agentwal export --dialect s' source sdk spec11
offers 'agentwal export --dialect source --session be' beta
offers 'agentwal path stores al' alpha alpine-2
offers 'agentwal salvage st' stores
offers 'agentwal backup st' stores
offers 'agentwal cat --no-p' --no-progress --no-pager
offers 'agentwal help tr' tree
offers 'agentwal check '
offers 'agentwal gc '
agentwal delete beta >/dev/null
offers 'agentwal undelete ' beta
offers 'agentwal show b'
agentwal undelete beta >/dev/null
unset AGENTWAL_STORE

# The store of the line.
offers 'agentwal --store st' stores
offers 'agentwal list --store stores/o' stores/one stores/other
offers 'agentwal --store stores/other show ' @latest
agentwal --store other-ids create --id 01a20720-ce96-715b-b3df-6a54ee3bcc40 2>/dev/null >/dev/null
offers 'agentwal --store other-ids show e3' e3bcc40
offers 'agentwal --store stores/none show '
offers 'agentwal show --store=stores/one be' beta
# shellcheck disable=SC2088
offers 'agentwal --store ~/stores/one rewind alpha s' second
offers 'agentwal --store stores/one export --session be' beta

# The names for a store that is the first operand.
offers 'walcat s' stores
offers 'walcat stores/o' stores/one stores/other
offers 'walcat stores/one ' @latest alpha beta alpine-2 with:colon
offers 'walcat stores/none '
offers 'walcat stores/one alpha '
offers 'walcat --tail 3 stores/one be' beta
offers 'walcat --fo' --follow --force-network-fs
offers "$WALBIN/walcat stores/one be" beta
offers 'walcat ~/stores/one al' alpha alpine-2
offers 'walcheck --s' --salvage --store-id --strict
offers 'walcheck stores/o' stores/one stores/other
offers 'walcheck stores/one '
offers 'walcheck --salvage st' stores

# agentwal: the verbs and options of its table, in each shell, and the files
# that are made from the table.
agentwal help --json >"$work/table"
mkdir -p "$work/made/tools/man" "$work/made/tools/completion"
python3 "$AGENTWAL_SOURCE/tools/agentwal/make_documents.py" "$work/made" <"$work/table"
for file in tools/man/agentwal.1 tools/completion/_agentwal tools/completion/agentwal.fish; do
    cmp "$work/made/$file" "$AGENTWAL_SOURCE/$file" ||
        fail "$file is not what agentwal help --json | make_documents.py makes"
done
table() {
    python3 -c '
import json, re, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
common = rows.pop()
def names(row):
    return re.findall(r"--[a-z][a-z-]*", " ".join(o["option"] for o in row["options"]))
if sys.argv[2] == "valued":
    for row in rows + [common]:
        for option in row["options"]:
            names = re.match(r"(?:-\w, )?(--[a-z-]+) ", option["option"])
            if names:
                print(names[1])
for row in rows:
    if sys.argv[2] == "verbs":
        print(row["verb"])
    elif row["verb"] == sys.argv[2]:
        print("\n".join(sorted(set(names(row) + names(common)))))
' "$work/table" "$1" | sort
}
table verbs >"$work/documented"
mapfile -t verbs <"$work/documented"
offers 'agentwal ' "${verbs[@]}"
sed -n "s/^    \([a-z][a-z-]*\))\$/\1/p" "$AGENTWAL_SOURCE/tools/completion/_agentwal" |
    sort >"$work/offered"
diff "$work/documented" "$work/offered" >&2 || fail "verbs in zsh"
sed -n 's/.*__fish_use_subcommand -a \([a-z-]*\) .*/\1/p' \
    "$AGENTWAL_SOURCE/tools/completion/agentwal.fish" | sort >"$work/offered"
diff "$work/documented" "$work/offered" >&2 || fail "verbs in fish"
sed -n 's/^\.SS //p' "$AGENTWAL_SOURCE/tools/man/agentwal.1" | sed 's/\\-/-/g' |
    sort >"$work/offered"
diff "$work/documented" "$work/offered" >&2 || fail "sections of the man page"
while read -r verb; do
    table "$verb" >"$work/documented_options"
    printf '%s %s %s\n' "${_agentwal_common:?}" "${_agentwal_common_verbs:?}" \
        "$(_agentwal_options "$verb")" | grep -o -e '--[a-z][a-z-]*' |
        sort -u >"$work/offered"
    diff "$work/documented_options" "$work/offered" >&2 || fail "options of agentwal $verb"
done <"$work/documented"
# The store of a line is read apart; --salvage is an option of walcheck alone.
table valued | sort -u | grep -vx -e --store >"$work/documented"
tr -s ' \n' '\n' <<<"${_agentwal_valued:?}" | grep -vx -e '' -e --salvage | sort >"$work/offered"
diff "$work/documented" "$work/offered" >&2 || fail "options with a value in bash"
if command -v zsh >/dev/null; then
    zsh -n "$AGENTWAL_SOURCE/tools/completion/_agentwal"
fi
if command -v fish >/dev/null; then
    fish -n "$AGENTWAL_SOURCE/tools/completion/agentwal.fish"
    fish -c "source $AGENTWAL_SOURCE/tools/completion/agentwal.fish
        complete -C 'agentwal --store=$work/stores/one show al'" |
        sort | tr '\n' ' ' >"$work/offered"
    same 'alpha alpine-2 ' "$(cat "$work/offered")" "sessions in fish"
fi

# The other names complete the options of their verbs, and those that name another verb.
while read -r tool verb other; do
    { table "$verb" && echo "$other"; } | sort -u >"$work/documented_options"
    printf '%s %s %s\n' "$_agentwal_common" "$_agentwal_common_verbs" \
        "$(_agentwal_options "$tool")" | grep -o -e '--[a-z][a-z-]*' | sort -u >"$work/offered"
    diff "$work/documented_options" "$work/offered" >&2 || fail "options of $tool"
done <<'NAMES'
walcat cat --tree
walcheck check --salvage
NAMES

# bash-completion loads the script by the tool's name.
cmake --install "$AGENTWAL_BUILD" --prefix "$work/prefix" >/dev/null
for tool in agentwal walcat walcheck; do
    complete -r "$tool"
    # shellcheck source=/dev/null
    . "$work/prefix/share/bash-completion/completions/$tool"
    complete -p "$tool" | grep -q _agentwal || fail "no completion for $tool"
done
[ -f "$work/prefix/share/zsh/site-functions/_agentwal" ] || fail "zsh"
[ -f "$work/prefix/share/fish/vendor_completions.d/agentwal.fish" ] || fail "fish"
[ -f "$work/prefix/share/man/man1/agentwal.1" ] || fail "man page"
for tool in walcat walcheck; do
    [ -f "$work/prefix/share/man/man1/$tool.1" ] || fail "man page of $tool"
    [ "$(readlink "$work/prefix/bin/$tool")" = agentwal ] || fail "$tool is no link"
    "$work/prefix/bin/$tool" --version | grep -q "^$tool " || fail "installed $tool"
done
