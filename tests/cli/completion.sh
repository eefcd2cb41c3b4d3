#!/usr/bin/env bash
# Bash completion of the tools: commands, options, stores, sessions.
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
walctl init stores/one
walctl init stores/other
for id in alpha beta alpine-2 "with:colon" "with blank"; do
    walctl create stores/one --id "$id" >/dev/null
done

offers 'walctl l' list latest
offers 'walctl ' init create append list latest show meta children fork head \
    compact-session redact delete doc checkpoint checkpoints checkpoint-show \
    checkpoint-diff checkpoint-delete checkpoint-export checkpoint-import \
    checkpointing rewind projects project stats migrate accept-damage
offers 'walctl projects stores/o' stores/one stores/other
offers 'walctl project st' stores
offers 'walctl show stores/o' stores/one stores/other
offers 'walctl show stores/one al' alpha alpine-2
offers 'walctl show stores/one ' @latest alpha beta alpine-2 with:colon
offers 'walctl show stores/one with:c' colon
offers 'walctl --json show stores/one be' beta
offers 'walctl show stores/none '
offers 'walctl show stores/one alpha '
offers 'walctl append stores/one alpha --e' --each --expect-tail
offers 'walctl append stores/one alpha --durability ' durable written queued
offers 'walctl fork --at x stores/one b' beta
printf 'text\n' >file
walctl checkpoint stores/one alpha first --root . file >/dev/null
walctl checkpoint stores/one alpha second --root . file >/dev/null
offers 'walctl rewind stores/one alpha f' first
offers 'walctl rewind stores/one alpha first --e' --expect
offers 'walctl checkpoint-diff stores/one alpha first s' second
offers 'walctl checkpoint stores/one alpha third fi' file
offers 'walctl checkpoint --root st' stores
offers 'walctl checkpointing stores/one alpha ' on off
offers 'walctl checkpoint-export stores/one alpha --layout ' sdk spec11
offers 'walctl checkpoint-import stores/one alpha st' stores
offers 'walctl doc g' get
offers 'walctl doc get stores/o' stores/one stores/other
offers 'walctl doc get stores/one al' alpha alpine-2
offers 'walcat s' stores
offers 'walcat --tail 3 stores/one be' beta
offers 'walcat --fo' --follow --force-network-fs
offers "$WALBIN/walcat stores/one be" beta
offers 'walcheck --s' --salvage --store-id --strict
offers 'walcheck stores/one '
offers 'walcheck --salvage st' stores
offers 'walconv ' import export follow path dialects
offers 'walconv import --dialect c' claude codex
offers 'walconv export --dialect s' source sdk spec11
offers 'walconv import --dialect o' opencode
offers 'walconv export --dialect source stores/one --session be' beta
offers 'walconv path stores/one stores al' alpha alpine-2

export AGENTWAL_STORE=$work/stores/one HOME=$work
offers 'agentwal chec' check checkpoint checkpoints checkpoint-show \
    checkpoint-diff checkpoint-delete checkpoint-export checkpoint-import \
    checkpointing
offers 'agentwal show al' alpha alpine-2
offers 'agentwal --json tree al' alpha alpine-2
offers 'agentwal --store stores/other show '  @latest
offers 'agentwal show --store=stores/one be' beta
offers 'agentwal --store st' stores
offers 'agentwal list --store stores/o' stores/one stores/other
offers 'agentwal rewind alpha f' first
offers 'agentwal checkpoint-diff alpha first s' second
offers 'agentwal append alpha --e' --each --expect-tail
offers 'agentwal import --dialect c' claude codex
offers 'agentwal import fi' file
offers 'agentwal salvage st' stores
offers 'agentwal cat --no-p' --no-progress --no-pager
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

# The completions are exactly the commands and options in the tools' help.
for tool in walctl walconv; do
    "$tool" --help | sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p;s/^  \([a-z]*\)$/\1/p' |
        sort -u >"$work/documented"
    for command in $(_agentwal_commands "$tool"); do
        printf '%s\n' "$command"
    done | sort >"$work/offered"
    diff "$work/documented" "$work/offered" >&2 || fail "commands of $tool"
done
for tool in walcat walcheck walconv walctl; do
    "$tool" --help | grep -o -e '--[a-z][a-z-]*' | sort -u >"$work/documented"
    {
        printf '%s\n' "$_agentwal_common"
        for command in '' $(_agentwal_commands "$tool"); do
            printf '%s\n' "$(_agentwal_options "$tool" "$command")"
        done
    } | grep -o -e '--[a-z][a-z-]*' | sort -u >"$work/offered"
    diff "$work/documented" "$work/offered" >&2 || fail "options of $tool"
done

# bash-completion loads the script by the tool's name.
cmake --install "$AGENTWAL_BUILD" --prefix "$work/prefix" >/dev/null
for tool in agentwal walcat walcheck walconv walctl; do
    complete -r "$tool"
    # shellcheck source=/dev/null
    . "$work/prefix/share/bash-completion/completions/$tool"
    complete -p "$tool" | grep -q _agentwal || fail "no completion for $tool"
done
[ -f "$work/prefix/share/zsh/site-functions/_agentwal" ] || fail "zsh"
[ -f "$work/prefix/share/fish/vendor_completions.d/agentwal.fish" ] || fail "fish"
[ -f "$work/prefix/share/man/man1/agentwal.1" ] || fail "man page"
[ "$(readlink "$work/prefix/bin/walctl")" = agentwal ] || fail "walctl is no link"
"$work/prefix/bin/walctl" --version | grep -q '^walctl ' || fail "installed walctl"
