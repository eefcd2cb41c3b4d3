#!/usr/bin/env bash
# A program written against interface 0.1 does not compile, and the compiler
# names what to use instead.
set -euo pipefail

include=$AGENTWAL_SOURCE/engine/include

# The names of interface 0.1 that interface 0.2 does not have.
structs=(changes_info checkpoint checkpoints docs docs_options file_changes heads
    iter iter_options list list_options migration resume_options rewind_answer
    rewind_info view_import_report view_place view_report)
enums=(docs_flag entry_type iter_flag iter_mode list_flag resume_from resume_how
    resume_mode resume_target)
functions=(checkpoint_close checkpoint_next checkpoint_open checkpoint_status
    checkpoints_close checkpoints_next checkpoints_open docs_close docs_get
    docs_next docs_open entry_type_name file_changes_close file_changes_next
    file_changes_status heads_close heads_next heads_open iter_close iter_get
    iter_next iter_open iter_remaining list_close list_cursor list_next list_open
    rewind_close rewind_get_info rewind_next rewind_status session_changes
    session_checkpointing session_latest session_resume session_status
    store_eventfd store_status view_odd)
constants=(CURSOR_SIZE DOCS_HISTORY DOCS_KEYS ECROWDED EHEAD ESKIPPED ESTALE
    ITER_ALL ITER_BRANCH ITER_DELTAS ITER_DURABLE ITER_OUT_OF_LINE ITER_REDACTED
    ITER_SINCE_COMPACTION LIST_LINEAGE RESUME_FORK RESUME_ID RESUME_IN_PLACE
    RESUME_LATEST)

# uses: one use of a removed name per line. A struct is used through a pointer
# too, which an incomplete type would allow.
uses() {
    printf '#include <agentwal.h>\n'
    printf 'struct wal_%s *pointer_%%d;\n' "${structs[@]}"
    printf 'char size_%%d[sizeof(struct wal_%s)];\n' "${structs[@]}"
    printf 'enum wal_%s enum_%%d;\n' "${enums[@]}"
    printf 'static long f_%%d(void) { return (long)&wal_%s; }\n' "${functions[@]}"
    printf 'static long f_%%d(void) { return (long)WAL_%s; }\n' "${constants[@]}"
}
uses | awk '{ gsub(/%d/, NR); print }' >use.c

# Each use is an error on its line that names the replacement.
count=$(wc -l <use.c)
for compiler in 'gcc -ftrack-macro-expansion=0' 'clang-14 -ferror-limit=0' \
    'g++ -x c++ -ftrack-macro-expansion=0' \
    'clang++-14 -x c++ -ferror-limit=0'; do
    if $compiler -fsyntax-only -I "$include" use.c 2>messages; then
        printf '%s: a program of 0.1 compiles\n' "$compiler"
        exit 1
    fi
    for ((line = 2; line <= count; line++)); do
        grep "^use.c:$line:.*error:" messages |
            grep -q '0\.2: use \|AGENTWAL_0_2_USE_' || {
            printf '%s: no replacement for: ' "$compiler"
            sed -n "${line}p" use.c
            exit 1
        }
    done
done

# The headers declare every replacement.
replacements=$(sed -n '/^WAL_REMOVED/,/);/p;/AGENTWAL_0_2_USE_/p' \
    "$include/agentwal/removed.h" | tr -d '\n' |
    grep -o '"[^"]*"\|AGENTWAL_0_2_USE_[A-Za-z_]*' |
    sed 's/AGENTWAL_0_2_USE_//' | grep -o 'wal_[a-z_]*\|WAL_[A-Z_]*' | sort -u)
[ "$(wc -w <<<"$replacements")" -ge 60 ]
for name in $replacements; do
    grep -qw "$name" "$include/agentwal.h" \
        "$include"/agentwal/{admin,blob,checkpoint}.h \
        "$AGENTWAL_SOURCE/convert/include/agentwal/convert.h" || {
        printf 'no replacement %s\n' "$name"
        exit 1
    }
done

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
