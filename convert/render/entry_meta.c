/*
 * entry_meta.c - reads the meta of imported lines, and encodes entries
 * (entry_meta.h).
 *
 * Threads: any thread.
 */
#include "convert/render/entry_meta.h"

#include <string.h>

#include "format/bytes/assert.h"
#include "format/json/json_out.h"
#include "format/json/json_scan.h"
#include "format/json/json_value.h"

static bool is_true(const struct wal_entry *entry, const char *key)
{
    struct wal__json_token value;

    return wal__json_find(entry->meta.data, (size_t)entry->meta.size, key,
                          &value) == WAL__JSON_OK &&
           value.kind == WAL__JSON_TRUE;
}

/* Sets the dialect of the view from which the line was imported. */
static void set_view_dialect(const struct wal_entry *entry,
                             struct wal__line_meta *meta)
{
    struct wal__json_token value;
    char name[32];
    size_t size = 0;

    if (wal__json_find(entry->meta.data, (size_t)entry->meta.size, "view",
                       &value) != WAL__JSON_OK ||
        value.kind != WAL__JSON_STRING) {
        return;
    }
    meta->is_from_view = true;
    if (wal__json_unescape(value.span, (uint8_t *)name, sizeof(name) - 1, &size,
                           NULL) == WAL__JSON_OK) {
        name[size] = '\0';
        meta->view = wal__dialect_find(name);
    }
}

static void set_after(const struct wal_entry *entry,
                      struct wal__line_meta *meta)
{
    struct wal__json_token value;

    if (wal__json_find(entry->meta.data, (size_t)entry->meta.size, "after",
                       &value) == WAL__JSON_OK &&
        value.kind == WAL__JSON_STRING && value.span.size > 2) {
        meta->after = value.span;
    }
}

struct wal__line_meta wal__entry_meta(const struct wal_entry *entry)
{
    struct wal__line_meta meta = {.is_opaque = false};

    if (entry->meta.size > 0) {
        meta.is_opaque = is_true(entry, "whole");
        meta.is_inexact = is_true(entry, "inexact");
        set_view_dialect(entry, &meta);
        set_after(entry, &meta);
    }
    return meta;
}

struct text {
    uint8_t *data;
    size_t size;
    size_t capacity;
};

static bool put(void *ctx, const void *data, size_t size)
{
    struct text *text = ctx;

    WAL__ASSERT(size <= text->capacity - text->size);
    memcpy(text->data + text->size, data, size);
    text->size += size;
    return true;
}

static struct wal__json_span span_of(struct wal_slice slice)
{
    return (struct wal__json_span){slice.data, (size_t)slice.size};
}

struct wal__json_span wal__entry_line(const struct wal_entry *entry,
                                      struct wal__arena *arena)
{
    /* Escaping makes at most six bytes of one; keys and brackets need fewer
     * than 100. */
    size_t capacity =
        100 + (size_t)(entry->payload.size + entry->meta.size) +
        6 * (size_t)(entry->id.size + entry->parent_id.size + entry->type.size +
                     entry->timestamp.size + entry->run_id.size);
    struct text text = {wal__arena_alloc(arena, capacity), 0, capacity};
    struct wal__json_out out = {.put = put, .ctx = &text};

    if (text.data == NULL) {
        return (struct wal__json_span){NULL, 0};
    }
    wal__json_out_open(&out, '{');
    wal__json_out_member_text(&out, "id", span_of(entry->id));
    if (entry->parent_id.size > 0) {
        wal__json_out_member_text(&out, "parentId", span_of(entry->parent_id));
    } else {
        wal__json_out_key(&out, "parentId");
        wal__json_out_literal(&out, "null");
    }
    wal__json_out_member_text(&out, "type", span_of(entry->type));
    wal__json_out_member_text(&out, "timestamp", span_of(entry->timestamp));
    if (entry->run_id.size > 0) {
        wal__json_out_member_text(&out, "runId", span_of(entry->run_id));
    }
    wal__json_out_member(&out, "payload", span_of(entry->payload));
    if (entry->meta.size > 0) {
        wal__json_out_member(&out, "meta", span_of(entry->meta));
    }
    wal__json_out_close(&out, '}');
    return (struct wal__json_span){text.data, text.size};
}
