/*
 * fuzz_json_merge.c - any bytes as target and patch, and as a user's message.
 *
 * An input is the target, a zero byte, and the patch. Checks that a merge is refused exactly when a
 * text is no JSON, that its result is JSON within the bound, and that merging once more changes
 * nothing; and that the beginning of a message is trimmed text of JSON.
 */
#include <string.h>

#include "format/json/json_merge.h"
#include "format/json/json_scan.h"
#include "format/json/json_text.h"
#include "format/payload/first_text.h"
#include "tests/fuzz/fuzz.h"

static uint8_t *allocate(size_t size)
{
    uint8_t *data = malloc(size + (size == 0));

    check(data != NULL);
    return data;
}

static bool is_json(struct wal__span text)
{
    return wal__json_validate(text.data, text.size, NULL) == WAL__JSON_OK;
}

static void check_merge(struct wal__span target, struct wal__span patch)
{
    size_t capacity = target.size + patch.size;
    uint8_t *out = allocate(capacity);
    struct wal__span result = {out, 0};
    bool is_sound = is_json(patch) && (target.size == 0 || is_json(target));

    enum wal__json_status status = wal__json_merge(target, patch, out, capacity, &result.size);
    check((status == WAL__JSON_OK) == is_sound);
    if (status == WAL__JSON_OK) {
        uint8_t *again = allocate(result.size + patch.size);
        size_t again_size = 0;
        check(result.size <= capacity && is_json(result));
        check(wal__json_merge(result, patch, again, result.size + patch.size, &again_size) ==
              WAL__JSON_OK);
        check(again_size == result.size && memcmp(again, out, again_size) == 0);
        free(again);
    }
    free(out);
}

static void check_text(struct wal__span payload)
{
    uint8_t out[WAL__FIRST_TEXT_MAX];
    struct wal__json_span text = {out, 0};
    size_t escaped;

    if (!wal__first_text(payload, out, &text.size)) {
        return;
    }
    check(text.size > 0 && text.size <= sizeof(out));
    check(out[0] != ' ' && out[text.size - 1] != ' ');
    check(wal__json_escaped_size(text, &escaped) == WAL__JSON_OK);
    check(payload.size > WAL__FIRST_TEXT_SCAN_MAX || is_json(payload));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *zero = size > 0 ? memchr(data, 0, size) : NULL;
    struct wal__span target = {data, zero != NULL ? (size_t)(zero - data) : 0};
    struct wal__span patch = {data, size};

    if (zero != NULL) {
        patch.data = zero + 1;
        patch.size = size - target.size - 1;
    }
    check_merge(target, patch);
    check_text(target);
    check_text(patch);
    return 0;
}
