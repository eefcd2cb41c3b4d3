/*
 * session_title.c - takes titles that a redacted entry gave (session_title.h).
 *
 * The resolve function runs in the leader, under the append lock and the state
 * lock for writing.
 */
#include "engine/session/session_title.h"

#include <string.h>

#include "engine/base/error.h"
#include "engine/session/session_record.h"
#include "engine/store/payload.h"
#include "format/bytes/assert.h"
#include "format/json/json_character.h"

enum {
    ATTEMPTS_MAX = 1000,
    LOADED_MAX = 16 * 1024 * 1024 /* bytes of a payload that is a blob */
};

/* --- whether an entry gives it ------------------------------------------ */

static bool is_space(uint8_t byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

/* The title without white space around it, and without the sign that it was
 * cut. */
static struct wal__span trim(struct wal__span title)
{
    static const uint8_t ellipsis[] = {0xe2, 0x80, 0xa6};

    if (title.size >= 3 &&
        (memcmp(title.data + title.size - 3, ellipsis, 3) == 0 ||
         memcmp(title.data + title.size - 3, "...", 3) == 0)) {
        title.size -= 3;
    }
    while (title.size > 0 && is_space(title.data[title.size - 1])) {
        title.size--;
    }
    while (title.size > 0 && is_space(title.data[0])) {
        title.data++;
        title.size--;
    }
    return title;
}

/* Reads the text whose first character is at *at, up to its closing quote.
 * Whether it begins with the title, after white space. */
static bool text_begins_with(const uint8_t **at, const uint8_t *end,
                             struct wal__span title)
{
    bool is_same = true;
    size_t size = 0;

    while (*at < end && **at != '"') {
        uint32_t code_point = 0;
        uint8_t encoded[4];
        size_t length;

        if (!wal__json_character_read(at, end, &code_point)) {
            *at = end;
            break;
        }
        if (code_point > 0x10ffff) { /* a line may have any bytes */
            is_same = false;
            continue;
        }
        length = wal__json_character_write(code_point, encoded);
        if (!is_same || size == title.size ||
            (size == 0 && length == 1 && is_space(encoded[0]))) {
            continue;
        }
        is_same = title.size - size >= length &&
                  memcmp(title.data + size, encoded, length) == 0;
        size += length;
    }
    return is_same && size == title.size;
}

bool wal__title_is_given(struct wal__span json, struct wal__span title)
{
    const uint8_t *at = json.data;
    const uint8_t *end = at + json.size;

    title = trim(title);
    while (title.size > 0 && at < end) {
        at = memchr(at, '"', (size_t)(end - at));
        if (at == NULL) {
            return false;
        }
        at++;
        if (text_begins_with(&at, end, title)) {
            return true;
        }
        at += at < end;
    }
    return false;
}

/* --- the sessions ------------------------------------------------------- */

/* The request of an operation whose frame is a SESSION record. */
struct change {
    uint64_t base; /* position of the record that it was made from */
    bool is_stale; /* out: `base` is not the newest any more */
};

static enum wal_status resolve(void *ctx, struct wal__op *op)
{
    struct change *change = op->request;
    struct wal__summary summary;
    enum wal_status status = wal__session_find(ctx, op->frames[0].frame.session,
                                               &summary, &op->error);

    WAL__ASSERT(op->frame_count == 1);
    if (status == WAL_OK && summary.session_position != change->base) {
        change->is_stale = true;
        return wal__fail(&op->error, WAL_ECONFLICT,
                         "the record of session \"%.*s\" changes all the time",
                         (int)summary.id.size, (const char *)summary.id.data);
    }
    op->frames[0].frame.flags = WAL__FRAME_FIRST | WAL__FRAME_LAST;
    return status;
}

static enum wal_status forget(struct wal__core *core, uint32_t number,
                              struct wal__span json, struct change *change,
                              struct wal_error *error)
{
    struct wal__current_record current = {.position = 0};
    enum wal_status status;

    change->is_stale = false;
    wal__record_buf_init(&current.scratch, core->env.heap);
    status = wal__session_read_current(core, number, &current, NULL);
    if (status == WAL_OK && current.position != 0 &&
        current.record.schema_version != 0 &&
        wal__title_is_given(json, current.record.title)) {
        change->base = current.position;
        current.record.title.size = 0;
        status = wal__session_write_record(core, number, &current.record,
                                           resolve, change, error);
    } else if (status != WAL_ENOMEM && status != WAL_EIO) {
        status = WAL_OK; /* it was deleted, or its record lost */
    }
    wal__record_buf_deinit(&current.scratch);
    return status;
}

/* Whether a session is the owner, or a fork that was made of it. */
static bool descends(const struct wal__core *core, struct wal__summary summary,
                     uint32_t owner)
{
    while (summary.number != owner) {
        if (summary.fork_source == 0 ||
            wal__catalogue_get(&core->catalogue, summary.fork_source,
                               &summary) != WAL_OK) {
            return false;
        }
    }
    return true;
}

/* Lists the sessions with a title that may be of the owner's entry. State
 * lock. */
static enum wal_status list(const struct wal__core *core, uint32_t owner,
                            struct wal__buf *numbers)
{
    enum wal_status status = WAL_OK;

    for (uint32_t number = owner;
         number <= core->catalogue.last_session && status == WAL_OK; number++) {
        struct wal__summary summary;

        if (wal__catalogue_get(&core->catalogue, number, &summary) == WAL_OK &&
            (summary.flags & WAL__SUMMARY_DELETED) == 0 &&
            summary.title.size > 0 && descends(core, summary, owner)) {
            status = wal__buf_append(numbers, &number, sizeof(number));
        }
    }
    return status;
}

/* Reads the payload of the entry; empty when it was erased. */
static enum wal_status read_payload(struct wal__core *core, uint64_t position,
                                    struct wal__record_buf *scratch,
                                    struct wal__buf *content,
                                    struct wal__span *json)
{
    struct wal__entry_record entry;
    struct wal__span payload;
    struct wal__frame frame;
    enum wal_status status =
        wal__log_read(&core->log, position, scratch, &frame, &payload, NULL);

    if (status == WAL_OK &&
        wal__entry_record_decode(payload, &entry) != WAL__FMT_OK) {
        status = WAL_ECORRUPT;
    }
    if (status != WAL_OK || entry.is_erased) {
        return status;
    }
    *json = entry.payload;
    if (entry.digest != NULL && entry.payload_size <= LOADED_MAX) {
        status = wal__payload_load(core, &entry, content, NULL);
        *json = (struct wal__span){content->data, content->size};
    }
    return status;
}

enum wal_status wal__session_gives_title(struct wal__core *core,
                                         uint64_t position,
                                         struct wal__span title, bool *gives,
                                         struct wal_error *error)
{
    struct wal__span json = {NULL, 0};
    struct wal__record_buf scratch;
    struct wal__buf content;
    enum wal_status status;

    wal__record_buf_init(&scratch, core->env.heap);
    wal__buf_init(&content, core->env.heap);
    status = read_payload(core, position, &scratch, &content, &json);
    *gives =
        status == WAL_OK && json.size > 0 && wal__title_is_given(json, title);
    wal__buf_deinit(&content);
    wal__record_buf_deinit(&scratch);
    return status == WAL_ENOMEM ? wal__no_memory(error) : WAL_OK;
}

enum wal_status wal__session_forget_titles(struct wal__core *core,
                                           uint32_t owner, uint32_t stream,
                                           uint64_t sequence,
                                           struct wal_error *error)
{
    struct wal__entry_location found = {0};
    struct wal__span json = {NULL, 0};
    struct wal__record_buf scratch;
    struct wal__buf content;
    struct wal__buf numbers;
    enum wal_status status = wal__core_write_lock(core, error);

    if (status != WAL_OK) {
        return status;
    }
    wal__record_buf_init(&scratch, core->env.heap);
    wal__buf_init(&content, core->env.heap);
    wal__buf_init(&numbers, core->env.heap);
    status =
        wal__core_find_sequence(core, owner, stream, sequence, &found, NULL);
    wal__core_unlock(core);
    if (status == WAL_OK) {
        status = read_payload(core, found.position, &scratch, &content, &json);
    }
    if (status == WAL_OK && json.size > 0) {
        status = wal__core_read_lock(core, error);
        if (status == WAL_OK) {
            status = list(core, owner, &numbers);
            wal__core_unlock(core);
        }
    }
    status =
        status == WAL_ENOTFOUND || status == WAL_ECORRUPT ? WAL_OK : status;
    for (size_t at = 0; at < numbers.size && json.size > 0 && status == WAL_OK;
         at += sizeof(uint32_t)) {
        struct change change = {.base = 0};
        uint32_t attempt = 0;
        uint32_t number;

        memcpy(&number, numbers.data + at, sizeof(number));
        do {
            status = forget(core, number, json, &change, error);
            attempt++;
        } while (status == WAL_ECONFLICT && change.is_stale &&
                 attempt < ATTEMPTS_MAX);
    }
    wal__buf_deinit(&numbers);
    wal__buf_deinit(&content);
    wal__record_buf_deinit(&scratch);
    return status == WAL_ENOMEM ? wal__no_memory(error) : status;
}
