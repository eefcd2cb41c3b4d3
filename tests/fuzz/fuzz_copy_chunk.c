/*
 * fuzz_copy_chunk.c - chunks of a copy (SPEC.md 5.17) of any bytes.
 *
 * Decodes the input as a chunk, and as the parts of one, which a chunk compresses: every range that
 * they read is inside the input.
 */
#include <string.h>

#include "convert/copy/copy.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t checks[64];
    const struct wal_slice input = {data, size};
    struct wal__copy_reader reader = {
        .steps = input, .text = input, .uuids = input, .checks = {checks, sizeof(checks)}};
    enum wal__copy_line_kind kind;

    (void)wal__copy_chunk_is_valid(input);
    while (reader.checks.size > 0 && wal__copy_read_line(&reader, &kind)) {
        struct wal__copy_step step = {.opcode = WAL__COPY_TEXT};

        check(reader.id_size <= WAL__COPY_ID_MAX);
        while (kind != WAL__COPY_LINE_OWN && step.opcode != WAL__COPY_END) {
            const uint8_t *text;

            if (!wal__copy_read_step(&reader, &step)) {
                return 0;
            }
            text = step.text.data;
            check(step.text.size == 0 || (const char *)text == reader.uuid ||
                  (text >= data && step.text.size <= size &&
                   (size_t)(text - data) <= size - (size_t)step.text.size));
        }
    }
    return 0;
}
