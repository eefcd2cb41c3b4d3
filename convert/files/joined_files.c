/*
 * joined_files.c - the documents of a view in memory (joined_files.h).
 *
 * Threads: one thread at a time.
 */
#include "convert/files/joined_files.h"

#include <stdlib.h>
#include <string.h>

static int compare_paths(const void *a, const void *b)
{
    const struct wal__view_file *const *one = a;
    const struct wal__view_file *const *two = b;

    return strcmp((*one)->lines.path, (*two)->lines.path);
}

/* Returns the index of the first document whose path is not before the key. */
static uint32_t lower_bound(const struct wal__joined_files *joined,
                            const char *key)
{
    uint32_t low = 0;
    uint32_t high = joined->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (strcmp(joined->items[middle]->lines.path, key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static struct wal__json_span value_of(const struct wal__view_file *file)
{
    return (struct wal__json_span){file->data.data, file->data.size};
}

static bool get_document(void *ctx, const char *key,
                         struct wal__json_span *value)
{
    const struct wal__joined_files *joined = ctx;
    uint32_t at = lower_bound(joined, key);

    if (at == joined->count ||
        strcmp(joined->items[at]->lines.path, key) != 0) {
        return false;
    }
    *value = value_of(joined->items[at]);
    return true;
}

static bool scan_documents(void *ctx, const char *prefix,
                           bool (*each)(void *each_ctx, const char *key,
                                        struct wal__json_span value),
                           void *each_ctx)
{
    const struct wal__joined_files *joined = ctx;
    size_t size = strlen(prefix);

    for (uint32_t i = lower_bound(joined, prefix); i < joined->count; i++) {
        const struct wal__view_file *file = joined->items[i];
        if (strncmp(file->lines.path, prefix, size) != 0) {
            break;
        }
        if (!each(each_ctx, file->lines.path, value_of(file))) {
            return false;
        }
    }
    return true;
}

bool wal__joined_files_init(struct wal__joined_files *joined,
                            struct wal__model_documents *documents)
{
    const struct wal__view_files *files = joined->files;

    joined->count = 0;
    joined->items = wal__heap_alloc(
        files->env->heap, (files->count + 1) * sizeof(joined->items[0]));
    if (joined->items == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < files->count; i++) {
        if (files->items[i]->is_document && files->items[i]->is_current) {
            joined->items[joined->count++] = files->items[i];
        }
    }
    qsort(joined->items, joined->count, sizeof(joined->items[0]),
          compare_paths);
    *documents = (struct wal__model_documents){
        .ctx = joined, .get = get_document, .scan = scan_documents};
    return true;
}

void wal__joined_files_deinit(struct wal__joined_files *joined)
{
    wal__heap_free(joined->files->env->heap, joined->items);
    joined->items = NULL;
}
