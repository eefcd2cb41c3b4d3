/*
 * model: names of features, and giving items.
 *
 * Threads: no shared state; any thread may call any function.
 */
#include "format/jsonl/model.h"

const char *wal__feature_text(enum wal__feature feature)
{
    static const char *const texts[] = {
#define WAL__FEATURE_TEXT(name, text) [WAL__FEATURE_##name] = text,
        WAL__FEATURE_LIST(WAL__FEATURE_TEXT)
#undef WAL__FEATURE_TEXT
    };

    return feature < WAL__FEATURE_COUNT ? texts[feature] : "";
}

bool wal__model_give(struct wal__model_reader *reader,
                     struct wal__model_item *item)
{
    if (item->dialect == NULL) {
        item->dialect = reader->dialect;
    }
    if (item->dialect != reader->dialect) {
        item->raw.size = 0; /* a line of the reader's */
    }
    return reader->sink(reader->ctx, item);
}
