/*
 * parts.c - the parts of batches that are no entries: documents, heads,
 * changes, deletions; as they are submitted, and as they are identified when
 * they are read (ledger.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/bytes/assert.h"
#include "tests/sim/ledger/ledger.h"

static const char title_letter = 't';

uint32_t ledger_add_part(struct ledger *ledger, uint32_t batch,
                         const struct ledger_part *part)
{
    uint32_t number = ledger->part_count;

    WAL__ASSERT(number < LEDGER_PARTS && batch + 1 == ledger->batch_count);
    ledger->part_count++;
    ledger->parts[number] = *part;
    ledger->parts[number].batch = batch;
    ledger->batches[batch].part_count++;
    if (part->kind == LEDGER_DELETE_SESSION) {
        ledger->sessions[part->session].drop = number;
    }
    return number;
}

/* --- as it is handed in ------------------------------------------------- */

void ledger_key(uint32_t key, char out[LEDGER_TEXT])
{
    (void)snprintf(out, LEDGER_TEXT, "k%u", key);
}

static void name_text(uint32_t key, char out[LEDGER_TEXT])
{
    (void)snprintf(out, LEDGER_TEXT, "head-%u", key);
}

static void part_text(char letter, uint32_t part, char out[LEDGER_TEXT])
{
    (void)snprintf(out, LEDGER_TEXT, "%c%05u", letter, part);
}

/* {"part":"pNNNNN","pad":"xxx..."} */
static uint8_t *fill_value(uint32_t part, uint32_t size)
{
    static const char after[] = "\"}";
    uint8_t *bytes = malloc(size);
    char before[48];
    int length = snprintf(before, sizeof(before),
                          "{\"part\":\"p%05u\",\"pad\":\"", part);

    WAL__ASSERT(bytes != NULL && length > 0 && size > (uint32_t)length + 2);
    memset(bytes, 'a' + (int)(part % 26), size);
    memcpy(bytes, before, (size_t)length);
    memcpy(bytes + size - 2, after, 2);
    return bytes;
}

void ledger_fill_document(const struct ledger *ledger, uint32_t part,
                          struct wal_doc *out, struct ledger_text *text)
{
    const struct ledger_part *recorded = &ledger->parts[part];

    memset(text, 0, sizeof(*text));
    ledger_key(recorded->key, text->id);
    *out = (struct wal_doc){.struct_size = sizeof(*out),
                            .key = ledger_slice(text->id)};
    if (recorded->session == LEDGER_NONE) {
        out->flags |= WAL_DOC_STORE;
    }
    if (recorded->kind == LEDGER_DELETE_DOC) {
        out->flags |= WAL_DOC_DELETE;
        return;
    }
    text->payload = fill_value(part, recorded->size);
    out->value = (struct wal_slice){text->payload, recorded->size};
}

void ledger_fill_head(const struct ledger *ledger, uint32_t part,
                      struct wal_head *out, struct ledger_text *text)
{
    const struct ledger_part *recorded = &ledger->parts[part];

    memset(text, 0, sizeof(*text));
    if (recorded->kind != LEDGER_MOVE_MAIN) {
        name_text(recorded->key, text->id);
    }
    if (recorded->target != LEDGER_NONE) {
        ledger_entry_id(recorded->target, text->parent);
    }
    part_text('p', part, text->run);
    *out = (struct wal_head){.struct_size = sizeof(*out),
                             .name = ledger_slice(text->id),
                             .entry_id = ledger_slice(text->parent),
                             .note = ledger_slice(text->run)};
    out->stream = recorded->kind == LEDGER_MOVE_MAIN
                      ? recorded->key
                      : recorded->key == LEDGER_HEADS_MAX - 1;
}

void ledger_fill_change(uint32_t part, struct wal_session_change *out,
                        struct ledger_text *text)
{
    memset(text, 0, sizeof(*text));
    (void)snprintf(text->meta, sizeof(text->meta), "{\"part\":\"p%05u\"}",
                   part);
    part_text(title_letter, part, text->run);
    *out = (struct wal_session_change){
        .struct_size = sizeof(*out),
        .fields = WAL_CHANGE_METADATA | WAL_CHANGE_TITLE | WAL_CHANGE_CWD,
        .metadata = ledger_slice(text->meta),
        .title = ledger_slice(text->run),
        .cwd = ledger_slice(part % 2 == 0 ? "/work/a" : "/work/moved")};
}

/* --- identification ----------------------------------------------------- */

/* The number after a letter, or LEDGER_NONE. */
static uint32_t number_of(const struct ledger *ledger, const char *text,
                          char letter)
{
    char again[LEDGER_TEXT];
    unsigned long number = strtoul(text + 1, NULL, 10);

    if (number >= ledger->part_count) {
        return LEDGER_NONE;
    }
    part_text(letter, (uint32_t)number, again);
    return strncmp(text, again, 6) == 0 ? (uint32_t)number : LEDGER_NONE;
}

static bool is_text(struct wal_slice slice, const char *text)
{
    return slice.size == strlen(text) &&
           memcmp(slice.data, text, slice.size) == 0;
}

/* The six letters at this place of a slice that is at least so long. */
static uint32_t parse_part(const struct ledger *ledger, struct wal_slice slice,
                           size_t offset, char letter)
{
    char text[8] = {0};

    if (slice.size < offset + 6) {
        return LEDGER_NONE;
    }
    memcpy(text, (const char *)slice.data + offset, 6);
    return number_of(ledger, text, letter);
}

uint32_t ledger_find_document(const struct ledger *ledger,
                              const struct wal_doc *doc)
{
    uint32_t part = parse_part(ledger, doc->value, 9, 'p');
    char key[LEDGER_TEXT];
    uint8_t *bytes;
    bool same;

    if (part == LEDGER_NONE || ledger->parts[part].kind != LEDGER_PUT_DOC ||
        ledger->parts[part].size != doc->value.size) {
        return LEDGER_NONE;
    }
    ledger_key(ledger->parts[part].key, key);
    bytes = fill_value(part, ledger->parts[part].size);
    same = memcmp(bytes, doc->value.data, doc->value.size) == 0 &&
           is_text(doc->key, key);
    free(bytes);
    return same ? part : LEDGER_NONE;
}

uint32_t ledger_find_head(const struct ledger *ledger,
                          const struct wal_head *head)
{
    uint32_t part = parse_part(ledger, head->note, 0, 'p');
    struct ledger_text text;
    struct wal_head recorded;

    if (part == LEDGER_NONE || ledger->parts[part].kind != LEDGER_MOVE_HEAD) {
        return LEDGER_NONE;
    }
    ledger_fill_head(ledger, part, &recorded, &text);
    return is_text(head->name, text.id) &&
                   is_text(head->entry_id, text.parent) &&
                   is_text(head->note, text.run) &&
                   head->stream == recorded.stream
               ? part
               : LEDGER_NONE;
}

uint32_t ledger_find_update(const struct ledger *ledger,
                            const struct wal_session_info *info)
{
    uint32_t part = parse_part(ledger, info->metadata, 9, 'p');
    struct wal_session_change recorded;
    struct ledger_text text;

    if (part == LEDGER_NONE || ledger->parts[part].kind != LEDGER_UPDATE) {
        return LEDGER_NONE;
    }
    ledger_fill_change(part, &recorded, &text);
    return is_text(info->metadata, text.meta) &&
                   is_text(info->title, text.run) &&
                   is_text(info->cwd, recorded.cwd.data)
               ? part
               : LEDGER_NONE;
}

bool ledger_may_be_deleted(const struct ledger *ledger, uint32_t session)
{
    const struct ledger_session *recorded = &ledger->sessions[session];

    return recorded->gone ||
           (recorded->drop != LEDGER_NONE &&
            ledger->batches[ledger->parts[recorded->drop].batch].state !=
                LEDGER_REFUSED);
}

bool ledger_descends(const struct ledger *ledger, uint32_t session,
                     uint32_t from)
{
    while (session != LEDGER_NONE && session != from) {
        session = ledger->sessions[session].source;
    }
    return session == from;
}
