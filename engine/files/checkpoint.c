/*
 * checkpoint.c - checkpoints (SPEC.md 5.13): the engine's documents of a session, in which they are
 * kept; encoding and decoding those of checkpoints; the setting that enables them; the entry of the
 * conversation with which one is linked; the cursor over the checkpoints of a session, and the
 * lists of the newest ones. Any thread, a cursor one at a time; the state lock is taken inside.
 *
 * Invariant: the order of checkpoints is that of the sequence numbers of document versions. No
 * clock is used.
 */
#include "engine/files/checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/containers.h"
#include "engine/base/error.h"
#include "engine/session/doc_cursor.h"
#include "engine/store/input_text.h"
#include "format/bytes/assert.h"
#include "format/json/json_scan.h"
#include "format/json/json_text.h"

static const struct wal__span enabled_key = {(const uint8_t *)"\0checkpointing", 14};

void wal__checkpoint_init(struct wal__checkpoint *checkpoint, const struct wal__heap *heap)
{
    *checkpoint = (struct wal__checkpoint){0};
    wal__buf_init(&checkpoint->texts, heap);
}

void wal__checkpoint_deinit(struct wal__checkpoint *checkpoint)
{
    const struct wal__heap *heap = checkpoint->texts.heap;

    wal__buf_deinit(&checkpoint->texts);
    wal__checkpoint_init(checkpoint, heap);
}

enum wal_status wal__checkpoint_check_id(struct wal_slice id, struct wal__span *span,
                                         struct wal_error *error)
{
    enum wal_status status = wal__text_check(id, WAL__ID_MAX, "checkpoint's id", span, error);

    return status == WAL_OK && span->size == 0 ? wal__invalid(error, "the checkpoint's id is empty")
                                               : status;
}

struct wal__span wal__checkpoint_key(struct wal__span id, uint8_t out[WAL__CHECKPOINT_KEY_MAX])
{
    struct wal__span key = {out, WAL__CHECKPOINT_PREFIX_SIZE + id.size};

    WAL__ASSERT(id.size <= WAL__ID_MAX);
    memcpy(out, wal__checkpoint_prefix, WAL__CHECKPOINT_PREFIX_SIZE);
    if (id.size > 0) {
        memcpy(out + WAL__CHECKPOINT_PREFIX_SIZE, id.data, id.size);
    }
    return key;
}

/* Copies the text and a NUL to *at, which is advanced. */
static struct wal__span put_text(uint8_t **at, struct wal__span text)
{
    const struct wal__span copy = {*at, text.size};

    if (text.size > 0) {
        memcpy(*at, text.data, text.size);
    }
    (*at)[text.size] = 0;
    *at += text.size + 1;
    return copy;
}

enum wal_status wal__checkpoint_set_strings(struct wal__checkpoint *checkpoint, struct wal__span id,
                                            struct wal__span root, struct wal__span entry,
                                            struct wal_error *error)
{
    size_t size = id.size + root.size + entry.size + 3;
    uint8_t *at;

    WAL__ASSERT(root.size > 0 && root.size < WAL__PATH_MAX);
    WAL__ASSERT(entry.size <= WAL__ID_MAX);
    checkpoint->texts.size = 0;
    if (wal__buf_reserve(&checkpoint->texts, size, &at) != WAL_OK) {
        return wal__no_memory(error);
    }
    checkpoint->id = put_text(&at, id);
    checkpoint->root = put_text(&at, root);
    checkpoint->entry = put_text(&at, entry);
    checkpoint->texts.size = size;
    return WAL_OK;
}

struct wal_checkpoint_info wal__checkpoint_info(const struct wal__checkpoint *checkpoint,
                                                uint32_t flags)
{
    return (struct wal_checkpoint_info){
        .struct_size = sizeof(struct wal_checkpoint_info),
        .flags = flags,
        .id = wal__text_slice(checkpoint->id),
        .root = wal__text_slice(checkpoint->root),
        .created_ms = checkpoint->created_ms,
        .files = checkpoint->files,
        .bytes = checkpoint->bytes,
        .new_blobs = checkpoint->new_blobs,
        .new_bytes = checkpoint->new_bytes,
        .version = checkpoint->version,
        .entry_id = wal__text_slice(checkpoint->entry),
    };
}

/* --- to JSON ------------------------------------------------------------- */

/* Appends a member whose value is a string of this escaped size. */
static enum wal_status encode_string(const char *name, struct wal__span text, size_t size,
                                     struct wal__buf *out)
{
    const struct wal__json_span span = {text.data, text.size};
    uint8_t *at;

    if (wal__buf_append(out, name, strlen(name)) != WAL_OK ||
        wal__buf_reserve(out, size, &at) != WAL_OK) {
        return WAL_ENOMEM;
    }
    out->size += size;
    return wal__json_escape(span, at, size, &size) == WAL__JSON_OK ? WAL_OK : WAL_EINVAL;
}

/* Writes the root as a string, or in hexadecimal when it is not UTF-8. */
static enum wal_status encode_root(struct wal__span root, struct wal__buf *out)
{
    const struct wal__json_span text = {root.data, root.size};
    size_t size = 0;
    uint8_t *at;

    if (wal__json_escaped_size(text, &size) == WAL__JSON_OK) {
        return encode_string("{\"root\":", root, size, out);
    }
    size = 2 * root.size + 2;
    if (wal__buf_append(out, "{\"rootHex\":", 11) != WAL_OK ||
        wal__buf_reserve(out, size, &at) != WAL_OK) {
        return WAL_ENOMEM;
    }
    out->size += size;
    at[0] = '"';
    wal__hex_write(root.data, root.size, (char *)at + 1);
    at[size - 1] = '"';
    return WAL_OK;
}

/* Writes the linked entry, if there is one; ids are UTF-8. */
static enum wal_status encode_entry(struct wal__span entry, struct wal__buf *out)
{
    const struct wal__json_span text = {entry.data, entry.size};
    size_t size = 0;

    if (entry.size == 0) {
        return WAL_OK;
    }
    return wal__json_escaped_size(text, &size) == WAL__JSON_OK
               ? encode_string(",\"entry\":", entry, size, out)
               : WAL_EINVAL;
}

enum wal_status wal__checkpoint_encode(const struct wal__checkpoint *checkpoint,
                                       struct wal__buf *out)
{
    char list[WAL__DIGEST_HEX_SIZE];
    char text[256];
    enum wal_status status = encode_root(checkpoint->root, out);
    int size;

    if (status != WAL_OK) {
        return status;
    }
    wal__hex_write(checkpoint->list.bytes, WAL__DIGEST_SIZE, list);
    size = snprintf(text, sizeof(text),
                    ",\"list\":\"%s\",\"files\":%" PRIu64 ",\"bytes\":%" PRIu64
                    ",\"newBlobs\":%" PRIu64 ",\"newBytes\":%" PRIu64 ",\"created\":%" PRId64,
                    list, checkpoint->files, checkpoint->bytes, checkpoint->new_blobs,
                    checkpoint->new_bytes, checkpoint->created_ms);
    WAL__ASSERT(size > 0 && (size_t)size < sizeof(text));
    status = wal__buf_append(out, text, (size_t)size);
    if (status == WAL_OK) {
        status = encode_entry(checkpoint->entry, out);
    }
    return status == WAL_OK ? wal__buf_append(out, "}", 1) : status;
}

/* --- from JSON ----------------------------------------------------------- */

enum { ROOT, ROOT_HEX, LIST, FILES, BYTES, NEW_BLOBS, NEW_BYTES, CREATED, ENTRY, MEMBER_COUNT };

/* Decodes a string of hexadecimal digits. False when the token is not one, or decodes to more than
 * `capacity` bytes. */
static bool decode_hex(const struct wal__json_token *token, uint8_t *out, size_t capacity,
                       size_t *size)
{
    *size = token->span.size / 2 - 1;
    return token->kind == WAL__JSON_STRING && token->span.size % 2 == 0 && *size <= capacity &&
           wal__hex_read(token->span.data + 1, *size, out);
}

static bool decode_number(const struct wal__json_token *token, uint64_t *number)
{
    int64_t value;

    if (token->kind != WAL__JSON_NUMBER || wal__json_integer(token->span, &value) != WAL__JSON_OK) {
        return false;
    }
    *number = (uint64_t)value;
    return true;
}

static bool decode_root(const struct wal__json_member *members, uint8_t out[WAL__PATH_MAX],
                        size_t *size)
{
    const struct wal__json_token *text = &members[ROOT].value;
    bool has_nul = false;

    if (text->kind != WAL__JSON_STRING) {
        return decode_hex(&members[ROOT_HEX].value, out, WAL__PATH_MAX - 1, size);
    }
    return wal__json_unescape(text->span, out, WAL__PATH_MAX - 1, size, &has_nul) == WAL__JSON_OK;
}

/* Older checkpoints, and those that were made before the first entry, have no such member. */
static bool decode_entry(const struct wal__json_token *token, uint8_t out[WAL__ID_MAX],
                         size_t *size)
{
    bool has_nul = false;

    if (token->kind == WAL__JSON_NONE) {
        *size = 0;
        return true;
    }
    return token->kind == WAL__JSON_STRING &&
           wal__json_unescape(token->span, out, WAL__ID_MAX, size, &has_nul) == WAL__JSON_OK &&
           *size > 0 && !has_nul;
}

static bool decode_numbers(const struct wal__json_member *members,
                           struct wal__checkpoint *checkpoint)
{
    uint64_t created = 0;
    bool is_valid = decode_number(&members[FILES].value, &checkpoint->files) &&
                    decode_number(&members[BYTES].value, &checkpoint->bytes) &&
                    decode_number(&members[NEW_BLOBS].value, &checkpoint->new_blobs) &&
                    decode_number(&members[NEW_BYTES].value, &checkpoint->new_bytes) &&
                    decode_number(&members[CREATED].value, &created);

    checkpoint->created_ms = (int64_t)created;
    return is_valid;
}

enum wal_status wal__checkpoint_decode(struct wal__checkpoint *checkpoint, struct wal__span id,
                                       struct wal__span value, uint64_t version,
                                       struct wal_error *error)
{
    struct wal__json_member members[MEMBER_COUNT] = {
        [ROOT] = {.key = "root"},          [ROOT_HEX] = {.key = "rootHex"},
        [LIST] = {.key = "list"},          [FILES] = {.key = "files"},
        [BYTES] = {.key = "bytes"},        [NEW_BLOBS] = {.key = "newBlobs"},
        [NEW_BYTES] = {.key = "newBytes"}, [CREATED] = {.key = "created"},
        [ENTRY] = {.key = "entry"},
    };
    struct wal__checkpoint read = *checkpoint;
    uint8_t root[WAL__PATH_MAX];
    struct wal__span root_span = {root, 0};
    uint8_t entry[WAL__ID_MAX];
    struct wal__span entry_span = {entry, 0};
    enum wal_status status;
    size_t list_size = 0;

    if (wal__json_members(value.data, value.size, members, MEMBER_COUNT, NULL) != WAL__JSON_OK ||
        !decode_root(members, root, &root_span.size) || root_span.size == 0 || root[0] != '/' ||
        memchr(root, 0, root_span.size) != NULL ||
        !decode_hex(&members[LIST].value, read.list.bytes, WAL__DIGEST_SIZE, &list_size) ||
        list_size != WAL__DIGEST_SIZE || !decode_numbers(members, &read) ||
        !decode_entry(&members[ENTRY].value, entry, &entry_span.size)) {
        return wal__fail(error, WAL_ECORRUPT,
                         "the document of checkpoint \"%.*s\" is damaged: a member is "
                         "missing or has an invalid "
                         "value",
                         (int)id.size, (const char *)id.data);
    }
    read.version = version;
    status = wal__checkpoint_set_strings(&read, id, root_span, entry_span, error);
    if (status == WAL_OK) {
        *checkpoint = read;
    }
    return status;
}

/* --- one checkpoint ------------------------------------------------------ */

static enum wal_status fail_not_found(struct wal_error *error, struct wal__span id)
{
    return wal__fail(error, WAL_ENOTFOUND, "there is no checkpoint \"%.*s\"", (int)id.size,
                     (const char *)id.data);
}

enum wal_status wal__checkpoint_get(struct wal_session *session, struct wal__span id,
                                    struct wal__checkpoint *checkpoint, struct wal_error *error)
{
    uint8_t key_buffer[WAL__CHECKPOINT_KEY_MAX];
    struct wal__buf value;
    uint64_t version = 0;
    enum wal_status status;

    wal__buf_init(&value, session->core->env.heap);
    status = wal__reserved_doc_get(session, wal__checkpoint_key(id, key_buffer), &value, &version,
                                   error);
    if (status == WAL_OK) {
        const struct wal__span span = {value.data, value.size};

        status = wal__checkpoint_decode(checkpoint, id, span, version, error);
    } else if (status == WAL_ENOTFOUND) {
        fail_not_found(error, id);
    }
    wal__buf_deinit(&value);
    return status;
}

enum wal_status wal__checkpoint_load(struct wal_session *session, struct wal__span id,
                                     struct wal__checkpoint *checkpoint, struct wal__files *files,
                                     struct wal_error *error)
{
    enum wal_status status = wal__checkpoint_get(session, id, checkpoint, error);

    return status == WAL_OK
               ? wal__files_load(files, &session->core->blobs, &checkpoint->list, error)
               : status;
}

enum wal_status wal_checkpoint_delete(struct wal_session *session, struct wal_slice id,
                                      struct wal_error *error)
{
    uint8_t key_buffer[WAL__CHECKPOINT_KEY_MAX];
    struct wal_doc doc = {.struct_size = sizeof(doc), .flags = WAL_DOC_DELETE};
    const struct wal_batch batch = {
        .struct_size = sizeof(batch), .documents = &doc, .document_count = 1};
    struct wal__span span;
    enum wal_status status = wal__check_writable(session == NULL ? NULL : session->core, error);

    if (status == WAL_OK) {
        status = wal__checkpoint_check_id(id, &span, error);
    }
    if (status != WAL_OK || session->core->env.io->forgets) {
        return status;
    }
    doc.key = wal__text_slice(wal__checkpoint_key(span, key_buffer));
    status = wal__reserved_commit(session, &batch, WAL__BATCH_PLAIN, WAL_DURABLE, NULL, error);
    return status == WAL_ENOTFOUND ? fail_not_found(error, span) : status;
}

/* --- the setting --------------------------------------------------------- */

enum wal_status wal__checkpoints_enabled(struct wal_session *session, bool *on,
                                         struct wal_error *error)
{
    struct wal__buf value;
    enum wal_status status;

    wal__buf_init(&value, session->core->env.heap);
    status = wal__reserved_doc_get(session, enabled_key, &value, NULL, error);
    if (status == WAL_OK || status == WAL_ENOTFOUND) {
        *on = status == WAL_ENOTFOUND || value.size != 5 || memcmp(value.data, "false", 5) != 0;
        status = WAL_OK;
    }
    wal__buf_deinit(&value);
    return status;
}

enum wal_status wal_session_set_checkpointing(struct wal_session *session, int32_t on,
                                              struct wal_error *error)
{
    const char *text = on != 0 ? "true" : "false";
    const struct wal__span value = {(const uint8_t *)text, strlen(text)};
    enum wal_status status = wal__check_writable(session == NULL ? NULL : session->core, error);

    return status == WAL_OK ? wal__reserved_doc_put(session, enabled_key, value,
                                                    WAL__DOC_ANY_VERSION, NULL, error)
                            : status;
}

/* --- roots --------------------------------------------------------------- */

static enum wal_status copy_cwd(struct wal_session *session, uint8_t out[WAL__PATH_MAX],
                                size_t *size, struct wal_error *error)
{
    struct wal__summary summary;
    enum wal_status status = wal__core_read_lock(session->core, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__session_find(session->core, session->number, &summary, error);
    if (status == WAL_OK) {
        *size = summary.cwd.size;
        if (*size > 0 && *size <= WAL__PATH_MAX) {
            memcpy(out, summary.cwd.data, *size);
        }
    }
    wal__core_unlock(session->core);
    return status;
}

enum wal_status wal__checkpoint_normalize_root(struct wal_session *session, struct wal__span root,
                                               char out[WAL__PATH_MAX], struct wal_error *error)
{
    uint8_t cwd[WAL__PATH_MAX];
    enum wal_status status = WAL_OK;

    if (root.size == 0) {
        root.data = cwd;
        status = copy_cwd(session, cwd, &root.size, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (root.size == 0) {
        return wal__invalid(error, "no root given, and the session has no working directory; give "
                                   "a root");
    }
    while (root.size > 1 && root.size <= WAL__PATH_MAX && root.data[root.size - 1] == '/') {
        root.size--;
    }
    if (root.size >= WAL__PATH_MAX || root.data[0] != '/' ||
        memchr(root.data, 0, root.size) != NULL) {
        return wal__invalid(error,
                            "the root must be an absolute path of at most %d "
                            "bytes, without a zero byte",
                            WAL__PATH_MAX - 1);
    }
    memcpy(out, root.data, root.size);
    out[root.size] = '\0';
    return WAL_OK;
}

/* --- entries ------------------------------------------------------------- */

enum {
    STREAM = 0 /* of the conversation */
};

enum wal_status wal__checkpoint_current_entry(struct wal_session *session, char out[WAL_ID_SIZE],
                                              struct wal_error *error)
{
    uint64_t looked = 0;
    const struct wal__span main_head = {NULL, 0};
    struct wal_error own = {.struct_size = sizeof(own)};
    enum wal_status status;

    do {
        status = wal__head_get(session, STREAM, main_head, out, &own);
    } while (wal__core_invalidate_derived(session->core, status, &looked));
    if (status == WAL_ENOTFOUND || status == WAL_ECORRUPT) {
        out[0] = '\0';
        return WAL_OK;
    }
    if (status != WAL_OK) {
        wal__error_copy(error, &own);
    }
    return status;
}

static enum wal_status find_entry(struct wal_session *session, struct wal__span id,
                                  uint32_t *stream, struct wal_error *error)
{
    struct wal__entry_location found;
    enum wal_status status = wal__core_write_lock(session->core, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__core_find_id(session->core, session->number, id, &found, error);
    wal__core_unlock(session->core);
    if (status == WAL_OK) {
        *stream = found.stream;
    }
    return status;
}

enum wal_status wal__checkpoint_check_entry(struct wal_session *session, struct wal__span id,
                                            struct wal_error *error)
{
    uint64_t looked = 0;
    uint32_t stream = STREAM;
    enum wal_status status;

    do {
        status = find_entry(session, id, &stream, error);
    } while (wal__core_invalidate_derived(session->core, status, &looked));
    if (status == WAL_ENOTFOUND || (status == WAL_OK && stream != STREAM)) {
        return wal__fail(error, WAL_ENOTFOUND,
                         "the conversation of the session has no entry "
                         "\"%.*s\"",
                         (int)id.size, (const char *)id.data);
    }
    return status;
}

/* --- lists --------------------------------------------------------------- */

enum {
    CHECKPOINTS_TRIED_MAX = 16 /* checkpoints to try, of any root */
};

/* A checkpoint that is not deleted; by default in this order. */
struct item {
    /* sequence of its first version after the last deletion */
    uint64_t created_sequence;
    uint64_t newest_sequence; /* sequence of its newest version */
    size_t rank;              /* index of the newest version in docs->items */
};

struct wal_checkpoint_cursor {
    struct wal__core *core;
    struct wal_doc_cursor *docs;
    struct wal__buf items; /* struct item, in order */
    size_t next;
    struct wal__checkpoint current;
};

static int compare_newest(const void *left, const void *right)
{
    const struct item *a = left;
    const struct item *b = right;

    return a->newest_sequence > b->newest_sequence ? -1 : a->newest_sequence < b->newest_sequence;
}

/* Adds the document whose versions, newest first, begin at `rank`, unless it is deleted. *end is
 * the rank after its versions. */
static enum wal_status add_document(struct wal_checkpoint_cursor *checkpoints, size_t rank,
                                    size_t *end)
{
    const struct wal__doc_cursor_item *items = (void *)checkpoints->docs->items.data;
    size_t count = checkpoints->docs->items.size / sizeof(*items);
    const struct wal__doc_cursor_item *newest = &items[rank];
    struct item item = {.newest_sequence = newest->sequence, .rank = rank};
    bool is_live = true;

    WAL__ASSERT(rank < count);
    for (; rank < count && items[rank].document == newest->document; rank++) {
        is_live = is_live && !items[rank].deleted;
        item.created_sequence = is_live ? items[rank].sequence : item.created_sequence;
    }
    WAL__ASSERT(rank > item.rank);
    *end = rank;
    /* A document with an unreadable key may be any document. */
    if (newest->deleted || newest->is_unreadable) {
        return WAL_OK;
    }
    return wal__buf_append(&checkpoints->items, &item, sizeof(item));
}

static enum wal_status add_documents(struct wal_checkpoint_cursor *checkpoints)
{
    size_t count = checkpoints->docs->items.size / sizeof(struct wal__doc_cursor_item);
    enum wal_status status = WAL_OK;
    size_t rank = 0;

    while (rank < count && status == WAL_OK) {
        status = add_document(checkpoints, rank, &rank);
    }
    return status;
}

static enum wal_status open_docs(struct wal_session *session, struct wal_doc_cursor **docs,
                                 struct wal_error *error)
{
    uint64_t looked = 0;
    const struct wal_doc_cursor_options options = {
        .struct_size = sizeof(options),
        .flags = WAL_DOC_CURSOR_HISTORY,
        .prefix = {wal__checkpoint_prefix, WAL__CHECKPOINT_PREFIX_SIZE}};
    enum wal_status status;

    do {
        status = wal__doc_cursor_open(session->core, session->number, &options, docs, error);
    } while (wal__core_invalidate_derived(session->core, status, &looked));
    return status;
}

enum wal_status wal__checkpoint_cursor_open(struct wal_session *session, bool newest_first,
                                            struct wal_checkpoint_cursor **checkpoints,
                                            struct wal_error *error)
{
    const struct wal__heap *heap = session->core->env.heap;
    struct wal_checkpoint_cursor *opened = wal__heap_zalloc(heap, sizeof(*opened));
    enum wal_status status;

    if (opened == NULL) {
        return wal__no_memory(error);
    }
    opened->core = session->core;
    wal__core_retain(opened->core);
    wal__buf_init(&opened->items, heap);
    wal__checkpoint_init(&opened->current, heap);
    status = open_docs(session, &opened->docs, error);
    if (status == WAL_OK && add_documents(opened) != WAL_OK) {
        status = wal__no_memory(error);
    }
    if (status != WAL_OK) {
        wal_checkpoint_cursor_close(opened);
        return status;
    }
    wal__buf_sort(&opened->items, sizeof(struct item),
                  newest_first ? compare_newest : wal__compare_u64);
    *checkpoints = opened;
    return WAL_OK;
}

enum wal_status wal__checkpoint_cursor_next(struct wal_checkpoint_cursor *checkpoints,
                                            const struct wal__checkpoint **checkpoint,
                                            struct wal_error *error)
{
    const struct item *items = (const void *)checkpoints->items.data;
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    struct wal__span id;
    struct wal__span value;
    enum wal_status status;

    WAL__ASSERT(checkpoints->next <= checkpoints->items.size / sizeof(*items));
    if (checkpoints->next == checkpoints->items.size / sizeof(*items)) {
        wal__record_buf_release(&checkpoints->docs->scratch);
        return WAL_END;
    }
    checkpoints->docs->next = items[checkpoints->next].rank;
    status = wal__doc_cursor_next(checkpoints->docs, &doc, error);
    checkpoints->next += status != WAL_ENOMEM;
    if (status != WAL_OK) {
        return status;
    }
    id.data = (const uint8_t *)doc.key.data + WAL__CHECKPOINT_PREFIX_SIZE;
    id.size = (size_t)doc.key.size - WAL__CHECKPOINT_PREFIX_SIZE;
    value.data = doc.value.data;
    value.size = (size_t)doc.value.size;
    status = wal__checkpoint_decode(&checkpoints->current, id, value, doc.version, error);
    if (status == WAL_OK) {
        *checkpoint = &checkpoints->current;
    }
    return status;
}

enum wal_status wal_checkpoint_cursor_open(struct wal_session *session,
                                           struct wal_checkpoint_cursor **checkpoints,
                                           struct wal_error *error)
{
    enum wal_status status = wal__check_session(session, error);

    if (status == WAL_OK && checkpoints == NULL) {
        status = wal__invalid(error, "the place for the cursor is null");
    }
    return status == WAL_OK ? wal__checkpoint_cursor_open(session, false, checkpoints, error)
                            : status;
}

enum wal_status wal_checkpoint_cursor_next(struct wal_checkpoint_cursor *checkpoints,
                                           struct wal_checkpoint_info *info,
                                           struct wal_error *error)
{
    const struct wal__struct *type = WAL__STRUCT(wal_checkpoint_info);
    const struct wal__checkpoint *checkpoint;
    enum wal_status status =
        wal__check_output(checkpoints == NULL ? NULL : checkpoints->core, type, info, error);

    if (status == WAL_OK) {
        status = wal__checkpoint_cursor_next(checkpoints, &checkpoint, error);
    }
    if (status == WAL_OK) {
        const struct wal_checkpoint_info own = wal__checkpoint_info(checkpoint, 0);

        wal__struct_store(type, info, &own);
    }
    return status;
}

void wal_checkpoint_cursor_close(struct wal_checkpoint_cursor *checkpoints)
{
    struct wal__core *core;

    if (checkpoints == NULL) {
        return;
    }
    core = checkpoints->core;
    wal__doc_cursor_close(checkpoints->docs);
    wal__buf_deinit(&checkpoints->items);
    wal__checkpoint_deinit(&checkpoints->current);
    wal__heap_free(core->env.heap, checkpoints);
    wal__core_release(core);
}

/* --- baselines ----------------------------------------------------------- */

/* Whether the status concerns one list, so that another may load. */
static bool is_damage(enum wal_status status)
{
    return status == WAL_ECORRUPT || status == WAL_ENOTFOUND || status == WAL_EIO;
}

/* Counts the wanted files that are in none of the lists. */
static uint32_t count_missing(const struct wal__files *wanted, const struct wal__files *lists,
                              uint32_t count)
{
    uint32_t missing = wanted->count;

    for (uint32_t i = 0; i < wanted->count; i++) {
        for (uint32_t j = 0; j < count; j++) {
            if (wal__files_find(&lists[j], wanted->items[i].path) != NULL) {
                missing--;
                break;
            }
        }
    }
    return missing;
}

/* Loads the list of a checkpoint if it has the root and is undamaged. */
static enum wal_status load_list(struct wal_session *session,
                                 const struct wal__checkpoint *checkpoint, struct wal__span root,
                                 struct wal__files *files, bool *loaded, struct wal_error *error)
{
    enum wal_status status;

    *loaded = false;
    if (!wal__span_equal(checkpoint->root, root)) {
        return WAL_OK;
    }
    status = wal__files_load(files, &session->core->blobs, &checkpoint->list, error);
    *loaded = status == WAL_OK;
    if (*loaded) {
        wal__files_invalidate_fresh(files, session->core->env.io);
    }
    return is_damage(status) ? WAL_OK : status;
}

static enum wal_status load_newest(struct wal_session *session,
                                   struct wal_checkpoint_cursor *checkpoints, struct wal__span root,
                                   const struct wal__files *wanted, struct wal__files *files,
                                   struct wal__digest *newest, uint32_t *count,
                                   struct wal_error *error)
{
    uint32_t filled = 0;

    for (int i = 0; i < CHECKPOINTS_TRIED_MAX && filled < WAL__CAPTURE_BASELINES; i++) {
        const struct wal__checkpoint *checkpoint;
        enum wal_status status = wal__checkpoint_cursor_next(checkpoints, &checkpoint, error);
        bool loaded = false;

        if (status == WAL_END) {
            break;
        }
        if (status == WAL_OK) {
            status = load_list(session, checkpoint, root, &files[filled], &loaded, error);
        }
        if (status != WAL_OK && !is_damage(status)) {
            return status;
        }
        if (!loaded) {
            continue;
        }
        WAL__ASSERT(filled < WAL__CAPTURE_BASELINES);
        if (filled++ == 0) {
            *newest = checkpoint->list;
        }
        if (count_missing(wanted, files, filled) == 0) {
            break;
        }
    }
    *count = filled;
    return WAL_OK;
}

enum wal_status wal__checkpoint_load_baselines(struct wal_session *session, struct wal__span root,
                                               const struct wal__files *wanted,
                                               struct wal__files *files, struct wal__digest *newest,
                                               uint32_t *count, struct wal_error *error)
{
    struct wal_checkpoint_cursor *checkpoints;
    enum wal_status status = wal__checkpoint_cursor_open(session, true, &checkpoints, error);

    if (status != WAL_OK) {
        return status;
    }
    status = load_newest(session, checkpoints, root, wanted, files, newest, count, error);
    wal_checkpoint_cursor_close(checkpoints);
    return status;
}
