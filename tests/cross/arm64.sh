#!/usr/bin/env bash
# The tests of units, of processes that are killed, of damaged stores, and of both bindings pass on
# arm64, by an emulator that runs one program (qemu-user), those of stores with pages of 64 KiB too;
# and the store that arm64 makes of a seed is the one that this system makes, byte for byte.
# tests/cross/arm64_kernel.sh has a real kernel, with pages of 16 KiB: Debian has no larger ones.
#
# Left out is what the emulator cannot show: it ignores madvise(2), so no page is populated or given
# back (test_write_map, test_io_posix), refuses filters of system calls (test_worktree_posix), and
# shows a process another start of it than other processes see, so that none can name it
# (test_store_claim, test_store_stopped, test_compact_report). With pages larger than this system's
# it maps nothing after the end of a file (test_io_memory).
set -euo pipefail
left_out=(test_write_map test_io_posix test_worktree_posix test_store_claim test_store_stopped
    test_compact_report)

fail() {
    printf 'arm64.sh: %s\n' "$*" >&2
    exit 1
}

# shellcheck source=tools/deps.sh
. "$AGENTWAL_SOURCE/tools/deps.sh"
deps_install 'qemu-user-static deps_command qemu-aarch64-static'
emulated=$AGENTWAL_SOURCE/tests/lib/emulated.sh
export QEMU_LD_PREFIX=$AGENTWAL_BUILD/cross/arm64-root
"$AGENTWAL_SOURCE/tests/lib/arm64_root.sh" "$QEMU_LD_PREFIX" libc6 libstdc++6 nodejs python3
built=$AGENTWAL_BUILD/cross/aarch64-linux-gnu
"$AGENTWAL_SOURCE/tools/cross.sh" --tests aarch64-linux-gnu "$built"

# The same store.
cmake --build "$AGENTWAL_BUILD" --target make_golden >build.log || { cat build.log && exit 1; }
cmake --build "$built" --target make_golden >build.log || { cat build.log && exit 1; }
mkdir here there
"$AGENTWAL_BUILD/tests/make_golden" here intact >/dev/null
"$emulated" "$built/tests/make_golden" there intact >/dev/null
diff -r here there || fail 'the stores differ'

# The bindings.
calls=$AGENTWAL_SOURCE/tests/conformance/conformance
for cases in conformance conformance_search; do
    for binding in node python; do
        command=("$QEMU_LD_PREFIX/usr/bin/node" "$calls.mjs")
        [ $binding = node ] || command=("$QEMU_LD_PREFIX/usr/bin/python3.11" -B "$calls.py")
        mkdir $cases-$binding
        (cd $cases-$binding && AGENTWAL_NODE_BINARY=$built/node/agentwal.node \
            PYTHONHOME=$QEMU_LD_PREFIX/usr PYTHONPATH=$built/python \
            "$emulated" "${command[@]}" "$AGENTWAL_SOURCE/bindings/$cases.json")
    done
done

# tests LABELS NAMES: those with one of the labels, by their names.
tests() {
    "$emulated" ctest --test-dir "$built" -j "$(nproc)" -L "^($1)\$" -R "$2" \
        -LE '^timing$' -E "^($(IFS='|' && echo "${left_out[*]}"))\$" --timeout 3600 \
        --output-on-failure
}
tests 'unit|golden|crash|fuzz' .
left_out+=(test_io_memory)
unset AGENTWAL_LONG
QEMU_PAGESIZE=65536 tests 'unit|crash' '^test_(io|log|session|store|sigkill)'
