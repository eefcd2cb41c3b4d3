#!/usr/bin/env bash
# A program written against interface 0.1 does not compile, and the compiler
# names what to use instead.
set -euo pipefail

include=$AGENTWAL_SOURCE/engine/include

# refused NAME TEXT: a use of the name fails with the text, as C and as C++.
refused() {
    printf '#include <agentwal.h>\nlong use(void);\nlong use(void)\n' >use.c
    printf '{\n    return (long)%s;\n}\n' "$1" >>use.c
    for compiler in gcc clang-14 'g++ -x c++' 'clang++-14 -x c++'; do
        if $compiler -fsyntax-only -I "$include" use.c 2>messages; then
            printf '%s: %s compiles\n' "$compiler" "$1"
            exit 1
        fi
        grep -qF "$2" messages || {
            printf '%s: %s: no "%s" in\n' "$compiler" "$1" "$2"
            cat messages
            exit 1
        }
    done
}

refused wal_iter_open '0.2: use wal_entry_cursor_open'
refused wal_session_resume '0.2: use wal_session_open'
refused wal_rewind_next '0.2: use wal_file_change_cursor_next'
refused wal_store_eventfd '0.2: use wal_store_completion_fd'
refused WAL_EHEAD AGENTWAL_0_2_USE_WAL_ECONFLICT
refused WAL_ITER_ALL AGENTWAL_0_2_USE_WAL_ENTRY_CURSOR_ALL

cat >program.c <<'PROGRAM'
#include <agentwal.h>

int main(void)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_store_info info = {.struct_size = sizeof(info)};
    struct wal_store *store = 0;

    return wal_open("store", 0, &store, &error) != WAL_OK ||
           wal_store_status(store, &info, &error) != WAL_OK;
}
PROGRAM
if gcc -std=c11 -fsyntax-only -I "$include" program.c 2>messages; then
    printf 'a program of 0.1 compiles\n'
    exit 1
fi
grep -qF '0.2: use wal_store_get_info' messages

# What is used instead does, with the helpers, in both languages.
cat >helpers.c <<'PROGRAM'
#include <agentwal.h>
#include <stdio.h>

int main(void)
{
    struct wal_error error = WAL_INIT(wal_error);
    struct wal_entry entry = WAL_INIT(wal_entry);
    static const char text[] = "static";

    entry.type = WAL_STR(WAL_TYPE_MESSAGE);
    entry.id = WAL_STR("one");
    (void)text;
    printf("%.*s\n", WAL_ARG(entry.id));
    return error.struct_size == sizeof(error) && entry.flags == 0 ? 0 : 1;
}
PROGRAM
warnings=(-Wall -Wextra -Wpedantic -Werror -fsyntax-only)
for compiler in gcc clang-14; do
    "$compiler" -std=c11 "${warnings[@]}" -I "$include" helpers.c
done
for compiler in g++ clang++-14; do
    for standard in c++11 c++17 c++20; do
        "$compiler" -x c++ "-std=$standard" "${warnings[@]}" -I "$include" \
            helpers.c
    done
done
