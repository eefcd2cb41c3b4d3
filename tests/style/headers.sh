#!/usr/bin/env bash
# Each public header is accepted as C and as C++, pedantically; every other
# header can be included alone.
set -euo pipefail

cd "$AGENTWAL_SOURCE"
shopt -s nullglob
public=(engine/include/agentwal.h engine/include/agentwal/*.h
    {convert,search,remote}/include/agentwal/*.h)
warnings=(-Wall -Wextra -Wpedantic -Werror)

for header in "${public[@]}"; do
    for standard in c99 c11; do
        gcc -fsyntax-only -x c -std=$standard "${warnings[@]}" \
            -Iengine/include -Wstrict-prototypes "$header"
    done
    for standard in c++11 c++20; do
        g++ -fsyntax-only -x c++ -std=$standard "${warnings[@]}" \
            -Iengine/include "$header"
    done
    clang-14 -fsyntax-only -x c -std=c11 "${warnings[@]}" -Iengine/include \
        "$header"
done

find format engine convert search remote tools -name '*.h' |
    while read -r header; do
        printf '#include "%s"\n' "$header" |
            gcc -fsyntax-only -x c -std=c11 -D_GNU_SOURCE "${warnings[@]}" \
                -I. -Iengine/include -Iconvert/include -Isearch/include -Iremote/include - ||
            { printf '%s cannot be included alone\n' "$header" && exit 1; }
    done
