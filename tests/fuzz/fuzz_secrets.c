/*
 * fuzz_secrets.c - finds secrets in any bytes, as a text and as JSON. What is found is inside the
 * text, in order. JSON without its secrets is JSON, and all else in it is as it was.
 */
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tools/secrets/secrets.h"

static struct secrets *rules(void)
{
    static const struct cli cli = {.tool = "fuzz"};
    static struct secrets secrets;

    if (secrets.count == 0) {
        secrets_open(&secrets, &cli, NULL);
    }
    return &secrets;
}

static size_t check_text(struct wal_slice text)
{
    struct secrets_found found;
    char mask[SECRETS_MASK];
    size_t count = 0;

    for (size_t at = 0; secrets_find(rules(), text, at, &found); at = found.end) {
        check(found.rule != NULL && found.from >= at && found.from < found.end &&
              found.end <= text.size);
        secrets_mask(
            (struct wal_slice){(const char *)text.data + found.from, found.end - found.from}, mask);
        check(strlen(mask) < SECRETS_MASK);
        count++;
    }
    for (size_t at = 0; secrets_find_possible(text, at, &found); at = found.end) {
        check(found.rule == NULL && found.from >= at && found.from < found.end &&
              found.end <= text.size);
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* Nothing is before and after it. */
    uint8_t *copy = malloc(size == 0 ? 1 : size);
    uint64_t *counts = calloc(rules()->name_count, sizeof(counts[0]));
    struct wal__buf out = {.data = NULL};
    struct wal_slice text = {copy, size};
    bool is_json;

    check(copy != NULL && counts != NULL);
    if (size > 0) {
        memcpy(copy, data, size);
    }
    is_json = wal__json_validate(copy, size, NULL) == WAL__JSON_OK;
    if (secrets_strike_json(rules(), text, counts, &out) > 0) {
        check(!is_json || wal__json_validate(out.data, out.size, NULL) == WAL__JSON_OK);
    } else {
        check(out.size == 0 && (is_json || check_text(text) == 0));
    }
    (void)check_text(text);
    free(out.data);
    free(counts);
    free(copy);
    return 0;
}
