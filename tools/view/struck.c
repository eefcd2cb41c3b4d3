/*
 * struck.c - a text without some of its parts (struck.h).
 */
#include "tools/view/struck.h"

#include <string.h>

#include "tools/cli/cli.h"

const char *view_kind_text(enum view_kind kind)
{
    static const char *const texts[] = {
#define VIEW_KIND_TEXT(name, text) [VIEW_##name] = (text),
        VIEW_KIND_LIST(VIEW_KIND_TEXT)
#undef VIEW_KIND_TEXT
    };

    return texts[kind];
}

void view_copy_put(struct view_copy *copy, const void *data, size_t size)
{
    if (copy->capacity - copy->size < size + 1) {
        copy->capacity = (copy->size + size + 1) * 2;
        copy->data = cli_realloc(copy->data, copy->capacity);
    }
    if (size > 0) {
        memcpy(copy->data + copy->size, data, size);
        copy->size += size;
    }
}

void view_copy_strike(struct view_copy *copy, enum view_kind kind)
{
    const char *text = view_kind_text(kind);

    view_copy_put(copy, "[", 1);
    view_copy_put(copy, text, strlen(text));
    view_copy_put(copy, " struck out]", 12);
    copy->counts[kind]++;
}

struct wal_slice view_copy_finish(struct view_copy *copy,
                                  struct cli_texts *texts)
{
    struct wal_slice text = {copy->data, copy->size};

    texts->items = cli_reserve(texts->items, texts->count, &texts->capacity,
                               sizeof(texts->items[0]));
    texts->items[texts->count++] = copy->data;
    return text;
}
