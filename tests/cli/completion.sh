#!/usr/bin/env bash
# Completion of the verbs, options, stores and sessions, in each shell.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/cli.sh"
_agentwal_common= # set by the completion script
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

offers 'walcat s' stores
offers 'walcat --tail 3 stores/one be' beta
offers 'walcat --fo' --follow --force-network-fs
offers "$WALBIN/walcat stores/one be" beta
offers 'walcheck --s' --salvage --store-id --strict
offers 'walcheck stores/one '
offers 'walcheck --salvage st' stores

offers 'agentwal chec' check checkpoint checkpoints checkpoint-show \
    checkpoint-diff checkpoint-delete checkpoint-export checkpoint-import \
    checkpointing
offers 'agentwal l' list latest
offers 'agentwal show al' alpha alpine-2
offers 'agentwal show ' @latest alpha beta alpine-2 with:colon
offers 'agentwal show with:c' colon
offers 'agentwal show alpha '
offers 'agentwal --json show be' beta
offers 'agentwal --store stores/none show a'
offers 'agentwal project st' stores
offers 'agentwal --json tree al' alpha alpine-2
offers 'agentwal --store stores/other show '  @latest
offers 'agentwal show --store=stores/one be' beta
offers 'agentwal --store st' stores
offers 'agentwal list --store stores/o' stores/one stores/other
offers 'agentwal rewind alpha f' first
offers 'agentwal checkpoint-diff alpha first s' second
offers 'agentwal rewind alpha first --e' --expect
offers 'agentwal append alpha --e' --each --expect-tail
offers 'agentwal append alpha --durability ' durable written queued
offers 'agentwal fork --at x b' beta
offers 'agentwal checkpoint alpha third fi' file
offers 'agentwal checkpoint --root st' stores
offers 'agentwal checkpointing alpha ' on off
offers 'agentwal checkpoint-export alpha --layout ' sdk spec11
offers 'agentwal checkpoint-import alpha st' stores
offers 'agentwal import --dialect c' claude codex
offers 'agentwal import --dialect o' opencode
offers 'agentwal export --dialect s' source sdk spec11
offers 'agentwal export --dialect source --session be' beta
offers 'agentwal path stores al' alpha alpine-2
offers 'agentwal import fi' file
offers 'agentwal salvage st' stores
offers 'agentwal cat --no-p' --no-progress --no-pager
offers 'agentwal doc g' get
offers 'agentwal doc get al' alpha alpine-2
offers 'agentwal doc get --store ' @latest alpha beta alpine-2 with:colon
offers 'agentwal help tr' tree
offers 'agentwal check '
unset AGENTWAL_STORE

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
for row in rows:
    if sys.argv[2] == "verbs":
        print(row["verb"])
    elif row["verb"] == sys.argv[2]:
        print("\n".join(sorted(set(names(row) + names(common)))))
' "$work/table" "$1" | sort
}
table verbs >"$work/documented"
for verb in $(_agentwal_commands agentwal); do
    printf '%s\n' "$verb"
done | sort >"$work/offered"
diff "$work/documented" "$work/offered" >&2 || fail "verbs in bash"
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
        "$(_agentwal_options agentwal "$verb")" | grep -o -e '--[a-z][a-z-]*' |
        sort -u >"$work/offered"
    diff "$work/documented_options" "$work/offered" >&2 || fail "options of agentwal $verb"
done <"$work/documented"
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

# Those of the other names are exactly the options in their help.
for tool in walcat walcheck; do
    "$tool" --help | grep -o -e '--[a-z][a-z-]*' | sort -u >"$work/documented"
    {
        printf '%s\n' "$_agentwal_common"
        _agentwal_options "$tool" ''
    } | grep -o -e '--[a-z][a-z-]*' | sort -u >"$work/offered"
    diff "$work/documented" "$work/offered" >&2 || fail "options of $tool"
done

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
    [ "$(readlink "$work/prefix/bin/$tool")" = agentwal ] || fail "$tool is no link"
    "$work/prefix/bin/$tool" --version | grep -q "^$tool " || fail "installed $tool"
done
