#!/usr/bin/env bash
# agentwal: where the store is, what creates it, and stores that are refused.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/cli.sh"
cd "$work"
unset AGENTWAL_STORE XDG_DATA_HOME
export HOME=$work/home
mkdir home
entry='{"type":"message","payload":{"role":"user","content":"hello"}}'

# Nothing exists yet: reading says so and how to make a store.
for verb in list stats latest check "show x" "append x"; do
    # shellcheck disable=SC2086
    code 3 agentwal $verb </dev/null
    grep -q 'agentwal init' "$work/stderr" || fail "no advice: $verb"
    [ ! -e home/.local ] || fail "$verb created a store"
done

# What writes a first thing creates the store, and says so once.
code 0 agentwal create --id one
grep -q "home/.local/share/agentwal: created this store" stderr || fail "note"
same one "$(cat stdout)" "output of create"
code 0 agentwal create --id two
[ ! -s stderr ] || fail "the second create prints: $(cat stderr)"
same 700 "$(stat -c %a home/.local/share/agentwal)" "mode of the store"
same 700 "$(stat -c %a home/.local)" "mode of a parent"
export AGENTWAL_STORE=$work/a/b/c
code 0 agentwal append --create new <<<"$entry"
grep -q 'created this store' stderr || fail "append --create"
same 1 "$(agentwal show new --json | field entries)" "entries of a new session"
code 0 agentwal append --create new <<<"$entry"
same 2 "$(agentwal show new --json | field entries)" "entries appended again"
code 1 agentwal append other <<<"$entry"
code 2 agentwal append --create @x <<<"$entry"
AGENTWAL_STORE=$work/imported
cp "$AGENTWAL_SOURCE/tools/example/session.jsonl" .
code 0 agentwal import session.jsonl
AGENTWAL_STORE=$work/docs
code 0 agentwal doc put --store key <<<1
code 0 agentwal init --store initialised
code 1 agentwal init --store initialised
code 0 agentwal --json init --store also
json 'rows[0]["store"] == "also"' stdout
[ ! -s stderr ] || fail "init --json prints on standard error"

# A creation that was cut short is repeated, and a store without MANIFEST is not
# taken for one.
mkdir -p cut/log cut/index
touch cut/LOCK cut/MANIFEST.new
code 3 agentwal --store cut list
grep -q 'agentwal init' stderr || fail "no advice for what a creation left"
code 0 agentwal --store cut create --id one
same one "$(agentwal --store cut latest)" "after a creation that was cut short"
rm cut/MANIFEST
code 1 agentwal --store cut create --id two
[ ! -e cut/MANIFEST ] || fail "a store without MANIFEST was made anew"

# The order: --store, AGENTWAL_STORE, XDG_DATA_HOME, HOME.
code 0 agentwal --store given create --id given
code 0 agentwal list --store=given --json
json 'rows[0]["sessionId"] == "given"' stdout
code 0 env AGENTWAL_STORE=given agentwal latest
same given "$(cat stdout)" AGENTWAL_STORE
unset AGENTWAL_STORE
code 0 env XDG_DATA_HOME="$work/data" agentwal create --id data
[ -d data/agentwal/log ] || fail "XDG_DATA_HOME"
code 0 env XDG_DATA_HOME=relative agentwal latest # which the standard ignores
code 0 env XDG_DATA_HOME= agentwal latest
same two "$(cat stdout)" "XDG_DATA_HOME is empty"
code 2 env -u HOME agentwal latest
grep -q -- '--store: is required' stderr || fail "no home"

# Bad stores.
code 2 agentwal --store '' list
grep -q -- '--store: is empty' stderr || fail "empty --store"

# The variable of a script is not set: no option takes that as its default.
for option in 'list --cwd' 'list --project' 'serve --socket' 'serve --port' \
    'search x --session' 'usage --since' 'create --id' 'view two --redact'; do
    # shellcheck disable=SC2086
    code 2 agentwal $option ''
    grep -q -- "--[a-z]*: is empty" stderr || fail "empty $option: $(cat stderr)"
done
code 2 agentwal serve --port 0 --token-file ''
code 2 agentwal rewind two c --root ''

code 2 env AGENTWAL_STORE= agentwal list
grep -q 'AGENTWAL_STORE: is empty' stderr || fail "empty variable"
# shellcheck disable=SC2088  # not to be expanded
for path in '~' '~/store' '~user/store'; do
    code 2 agentwal --store "$path" create
    grep -q 'the shell did not expand' stderr || fail "$path"
done
[ ! -e '~' ] || fail "a directory named ~"
: >file
code 3 agentwal --store file list
code 3 agentwal --store file create
code 3 agentwal --store file/below create
grep -q 'Not a directory' stderr || fail "a parent is a file"
mkdir other
: >other/something
code 3 agentwal --store other create
[ ! -e other/log ] || fail "a store in a directory with other files"
ln -s nowhere dangling
code 3 agentwal --store dangling list
if [ "$(id -u)" != 0 ]; then
    as_user=()
else
    as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
fi
if [ "${#as_user[@]}" -eq 0 ] || "${as_user[@]}" test -x "$WALBIN/agentwal"; then
    mkdir locked
    chmod 755 "$work"
    chmod 500 locked
    code 3 "${as_user[@]}" "$WALBIN/agentwal" --store locked/store create
    grep -q 'Permission denied' stderr || fail "no permission: $(cat stderr)"
    chmod 000 locked
    code 3 "${as_user[@]}" "$WALBIN/agentwal" --store locked/store list
    chmod 700 locked
fi

# walcheck checks STORE, not the one of the environment.
code 3 env AGENTWAL_STORE=given walcheck "$work/none"
# doc: --store after the verb means the documents of the store.
code 0 agentwal --store docs doc list --store
same key "$(cat stdout)" "doc list --store"
code 0 agentwal doc --store=docs get --store key
same 1 "$(cat stdout)" "doc get --store=DIR --store"
