/*
 * copy_ids.c - maps the ids of a copy's entries (copy_ids.h).
 *
 * Threads: one thread at a time.
 */
#include "convert/render/copy_ids.h"

#include <stdio.h>
#include <string.h>

#include "convert/render/entry_meta.h"
#include "format/bytes/assert.h"
#include "format/json/json_value.h"

#define ID_MAX 255

static struct wal__json_span span_of(struct wal_slice slice)
{
    return (struct wal__json_span){slice.data, (size_t)slice.size};
}

/* Parses the entry's line; false if it has no ids. */
static bool read_line(const struct wal__dialect *dialect,
                      const struct wal_entry *entry,
                      struct wal__line_info *line)
{
    struct wal__json_span text =
        wal__line_text(entry->payload.data, (size_t)entry->payload.size);

    return (entry->flags & WAL_ENTRY_LINE) != 0 &&
           (entry->flags & WAL_ENTRY_REDACTED) == 0 &&
           !wal__line_is_blank(text.data, text.size) &&
           !wal__entry_meta(entry).is_opaque &&
           dialect->read(text.data, text.size, line, NULL) == WAL__JSON_OK;
}

static bool is_used(const struct wal__copy_ids *ids, struct wal__json_span text)
{
    struct wal__json_span found;

    return wal__model_table_get(&ids->used_ids, wal__model_hash(0, text),
                                &found);
}

/* Decodes a string that is valid as an id or a time of the log. */
static bool decode_string(struct wal__json_span string, uint8_t *text,
                          size_t most, struct wal__json_span *plain)
{
    size_t size = 0;

    if (string.size < 3 ||
        wal__json_unescape(string, text, most, &size, NULL) != WAL__JSON_OK) {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        if (text[i] < 0x20 || text[i] == 0x7F) {
            return false;
        }
    }
    *plain = (struct wal__json_span){text, size};
    return size > 0;
}

/* An id that no earlier entry has, generated in `text` if necessary. */
static struct wal__json_span choose_id(const struct wal__copy_ids *ids,
                                       const struct wal__line_info *line,
                                       const struct wal_entry *entry,
                                       uint8_t text[ID_MAX + 1])
{
    struct wal__json_span id = {NULL, 0};

    if (line != NULL && decode_string(line->id, text, ID_MAX, &id) &&
        !is_used(ids, id)) {
        return id;
    }
    id = span_of(entry->id);
    for (unsigned n = 2; is_used(ids, id); n++) {
        int most = entry->id.size < 230 ? (int)entry->id.size : 230;
        int size = snprintf((char *)text, ID_MAX + 1, "%.*s~%u", most,
                            (const char *)entry->id.data, n);
        id = (struct wal__json_span){text, (size_t)size};
    }
    return id;
}

/* The mapped id of the entry's parent in the log, or the previous entry's
 * id. */
static struct wal__json_span map_parent(const struct wal__copy_ids *ids,
                                        const struct wal_entry *entry)
{
    struct wal__json_span parent = {NULL, 0};

    if (entry->parent_id.size > 0 &&
        !wal__model_table_get(&ids->by_log_id,
                              wal__model_hash(0, span_of(entry->parent_id)),
                              &parent)) {
        return ids->last_id;
    }
    return parent;
}

static struct wal__json_span find_parent(const struct wal__copy_ids *ids,
                                         const struct wal__line_info *line,
                                         const struct wal_entry *entry)
{
    struct wal__json_span parent = {NULL, 0};

    if (line == NULL) {
        return (entry->flags & WAL_ENTRY_LINE) != 0 &&
                       (entry->flags & WAL_ENTRY_REDACTED) == 0
                   ? ids->last_id
                   : map_parent(ids, entry);
    }
    if (line->link == WAL__LINK_EXPLICIT &&
        wal__model_table_get(
            &ids->used_ids, wal__model_string_hash(0, line->parent), &parent)) {
        return parent;
    }
    if (line->link == WAL__LINK_PREVIOUS) {
        return ids->last_id;
    }
    return line->link == WAL__LINK_ROOT ? parent : map_parent(ids, entry);
}

static struct wal_slice slice_from(struct wal__json_span text)
{
    return (struct wal_slice){text.data, text.size};
}

static void set_time(struct wal__copy_ids *ids,
                     const struct wal__line_info *line, struct wal_entry *entry)
{
    uint8_t text[sizeof(ids->time)];
    struct wal__json_span time;

    if (line != NULL && decode_string(line->time, text, sizeof(text), &time)) {
        WAL__ASSERT(time.size <= sizeof(ids->time));
        memcpy(ids->time, time.data, time.size);
        ids->time_size = time.size;
    }
    if ((entry->flags & WAL_ENTRY_LINE) != 0 && ids->time_size > 0) {
        entry->timestamp = (struct wal_slice){ids->time, ids->time_size};
    }
}

bool wal__copy_ids_map_entry(struct wal__copy_ids *ids, struct wal__arena *keep,
                             const struct wal__dialect *dialect,
                             struct wal_entry *entry)
{
    uint64_t key = wal__model_hash(0, span_of(entry->id));
    uint8_t text[ID_MAX + 1];
    struct wal__line_info line;
    const struct wal__line_info *parsed =
        read_line(dialect, entry, &line) ? &line : NULL;
    struct wal__json_span parent = find_parent(ids, parsed, entry);
    struct wal__json_span id = choose_id(ids, parsed, entry, text);

    set_time(ids, parsed, entry);
    id = wal__arena_copy(keep, id);
    ids->by_log_id.arena = keep;
    ids->used_ids.arena = keep;
    if (id.data == NULL || !wal__model_table_put(&ids->by_log_id, key, id) ||
        !wal__model_table_put(&ids->used_ids, wal__model_hash(0, id), id)) {
        return false;
    }
    ids->last_id = id;
    entry->id = slice_from(id);
    entry->parent_id = slice_from(parent);
    return true;
}

struct wal__json_span wal__copy_ids_find(const struct wal__copy_ids *ids,
                                         struct wal__json_span id)
{
    struct wal__json_span own = {NULL, 0};

    if (id.size > 0) {
        (void)wal__model_table_get(&ids->by_log_id,
                                   wal__model_string_hash(0, id), &own);
    }
    return own;
}
