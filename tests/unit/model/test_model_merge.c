/*
 * test_model_merge.c - tests of merging the parts of one answer.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "convert/model/model_member.h"
#include "convert/model/model_merge.h"
#include "tests/lib/test.h"

static struct wal__model_item emitted;
static size_t count;

static bool emit(void *ctx, struct wal__model_item *item)
{
    (void)ctx;
    emitted = *item;
    count++;
    return true;
}

static bool on_merged(void *ctx, struct wal__json_span id,
                      struct wal__json_span to)
{
    (void)ctx;
    (void)id;
    (void)to;
    return true;
}

static struct wal__model_item part(const char *id, const char *parent,
                                   uint8_t stop)
{
    return (struct wal__model_item){.kind = WAL__ITEM_MESSAGE,
                                    .role = WAL__ROLE_ASSISTANT,
                                    .id = wal__model_literal(id),
                                    .parent = wal__model_literal(parent),
                                    .answer_id = wal__model_literal("\"m\""),
                                    .stop = stop};
}

/* An answer stops where its last part says; a part without a reason says
 * nothing. */
TEST(merge__last_stop_reason_counts)
{
    struct wal__model_merge merge = {.emit = emit, .on_merged = on_merged};
    struct wal__model_item parts[] = {
        part("\"1\"", "\"0\"", WAL__STOP_END),
        part("\"2\"", "\"1\"", WAL__STOP_TOOL),
        part("\"3\"", "\"2\"", WAL__STOP_NONE),
    };

    count = 0;
    for (size_t i = 0; i < 3; i++) {
        assert_true(wal__model_merge_add(&merge, &parts[i]));
    }
    assert_true(wal__model_merge_flush(&merge));
    assert_int_equal(count, 1);
    assert_int_equal(emitted.stop, WAL__STOP_TOOL);
}
