#include "format/jsonl/dialect.h"
static enum wal__json_status none_tree(struct wal__model_reader *r,
                                       const struct wal__model_tree *t)
{
    (void)r;
    (void)t;
    return WAL__JSON_OK;
}
const struct wal__dialect_reading wal__reading_opencode = {.tree = none_tree};
