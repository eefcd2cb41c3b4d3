/*
 * file_issues.c - a growing list of paths with reasons (file_issues.h). The path and the reason of
 * an item are one allocation, which the path begins.
 */
#include "engine/files/file_issues.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"
#include "format/bytes/assert.h"

static void remove_last(struct wal__file_issues *issues)
{
    WAL__ASSERT(issues->count > 0);
    wal__heap_free(issues->heap, (void *)(uintptr_t)issues->items[--issues->count].path.data);
}

void wal__file_issues_deinit(struct wal__file_issues *issues)
{
    while (issues->count > 0) {
        remove_last(issues);
    }
    wal__heap_free(issues->heap, issues->items);
    *issues = (struct wal__file_issues){.heap = issues->heap};
}

enum wal_status wal__file_issues_add(struct wal__file_issues *issues, struct wal__span path,
                                     struct wal_error *error)
{
    const char *cause = error->sys_errno == 0 ? "" : strerror(error->sys_errno);
    size_t size = strlen(error->text) + strlen(cause) + sizeof(": ");
    char *text;

    if (!WAL__HEAP_GROW(issues->heap, issues->items, issues->count, issues->capacity)) {
        return wal__no_memory(error);
    }
    text = wal__heap_alloc(issues->heap, path.size + size);
    if (text == NULL) {
        return wal__no_memory(error);
    }
    memcpy(text, path.data, path.size);
    (void)snprintf(text + path.size, size, "%s%s%s", error->text, *cause == '\0' ? "" : ": ",
                   cause);
    issues->items[issues->count++] = (struct wal_checkpoint_issue){
        .struct_size = sizeof(issues->items[0]),
        .status = error->status,
        .path = {text, path.size},
        .reason = {text + path.size, strlen(text + path.size)},
    };
    error->status = WAL_OK;
    return WAL_OK;
}

static int compare(const void *a, const void *b)
{
    const struct wal_checkpoint_issue *one = a;
    const struct wal_checkpoint_issue *other = b;
    uint64_t size = one->path.size < other->path.size ? one->path.size : other->path.size;
    int order = memcmp(one->path.data, other->path.data, (size_t)size);

    return order != 0 ? order
                      : (one->path.size > other->path.size) - (one->path.size < other->path.size);
}

void wal__file_issues_sort(struct wal__file_issues *issues)
{
    uint32_t kept = 0;

    if (issues->count > 1) {
        qsort(issues->items, issues->count, sizeof(issues->items[0]), compare);
    }
    for (uint32_t i = 0; i < issues->count; i++) {
        if (kept > 0 && compare(&issues->items[kept - 1], &issues->items[i]) == 0) {
            wal__heap_free(issues->heap, (void *)(uintptr_t)issues->items[i].path.data);
        } else {
            issues->items[kept++] = issues->items[i];
        }
    }
    issues->count = kept;
}
