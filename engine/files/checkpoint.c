/*
 * checkpoint.c - encodes and decodes the documents of checkpoints, and the
 * setting that enables checkpoints (SPEC.md 5.13). Any thread.
 */
#include "engine/files/checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/files/checkpoint_document.h"
#include "engine/files/reserved_docs.h"
#include "engine/store/input_text.h"
#include "format/bytes/assert.h"
#include "format/json/json_scan.h"
#include "format/json/json_value.h"

static const struct wal__span enabled_key = {(const uint8_t *)"\0checkpointing",
                                             14};

void wal__checkpoint_init(struct wal__checkpoint *checkpoint,
                          const struct wal__heap *heap)
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

enum wal_status wal__checkpoint_check_id(struct wal_slice id,
                                         struct wal__span *span,
                                         struct wal_error *error)
{
    enum wal_status status =
        wal__text_check(id, WAL__ID_MAX, "checkpoint's id", span, error);

    return status == WAL_OK && span->size == 0
               ? wal__invalid(error, "the checkpoint's id is empty")
               : status;
}

struct wal__span wal__checkpoint_key(struct wal__span id,
                                     uint8_t out[WAL__CHECKPOINT_KEY_MAX])
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

enum wal_status wal__checkpoint_set_strings(struct wal__checkpoint *checkpoint,
                                            struct wal__span id,
                                            struct wal__span root,
                                            struct wal__span entry,
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

/* --- to JSON ------------------------------------------------------------- */

static void encode_hex(struct wal__span bytes, uint8_t *out)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < bytes.size; i++) {
        out[2 * i] = (uint8_t)digits[bytes.data[i] >> 4];
        out[2 * i + 1] = (uint8_t)digits[bytes.data[i] & 15];
    }
}

/* Appends a member whose value is a string of this escaped size. */
static enum wal_status encode_string(const char *name, struct wal__span text,
                                     size_t size, struct wal__buf *out)
{
    const struct wal__json_span span = {text.data, text.size};
    uint8_t *at;

    if (wal__buf_append(out, name, strlen(name)) != WAL_OK ||
        wal__buf_reserve(out, size, &at) != WAL_OK) {
        return WAL_ENOMEM;
    }
    out->size += size;
    return wal__json_escape(span, at, size, &size) == WAL__JSON_OK ? WAL_OK
                                                                   : WAL_EINVAL;
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
    encode_hex(root, at + 1);
    at[size - 1] = '"';
    return WAL_OK;
}

/* Writes the linked entry, if there is one; ids are UTF-8. */
static enum wal_status encode_entry(struct wal__span entry,
                                    struct wal__buf *out)
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
    const struct wal__span list = {checkpoint->list.bytes, WAL__DIGEST_SIZE};
    uint8_t hex[2 * WAL__DIGEST_SIZE];
    char text[256];
    enum wal_status status = encode_root(checkpoint->root, out);
    int size;

    if (status != WAL_OK) {
        return status;
    }
    encode_hex(list, hex);
    size = snprintf(text, sizeof(text),
                    ",\"list\":\"%.*s\",\"files\":%" PRIu64
                    ",\"bytes\":%" PRIu64 ",\"newBlobs\":%" PRIu64
                    ",\"newBytes\":%" PRIu64 ",\"created\":%" PRId64,
                    (int)sizeof(hex), (const char *)hex, checkpoint->files,
                    checkpoint->bytes, checkpoint->new_blobs,
                    checkpoint->new_bytes, checkpoint->created_ms);
    WAL__ASSERT(size > 0 && (size_t)size < sizeof(text));
    status = wal__buf_append(out, text, (size_t)size);
    if (status == WAL_OK) {
        status = encode_entry(checkpoint->entry, out);
    }
    return status == WAL_OK ? wal__buf_append(out, "}", 1) : status;
}

/* --- from JSON ----------------------------------------------------------- */

enum {
    ROOT,
    ROOT_HEX,
    LIST,
    FILES,
    BYTES,
    NEW_BLOBS,
    NEW_BYTES,
    CREATED,
    ENTRY,
    MEMBER_COUNT
};

static int hex_value(uint8_t digit)
{
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/* Decodes a string of hexadecimal digits. False when the token is not one, or
 * decodes to more than `capacity` bytes. */
static bool decode_hex(const struct wal__json_token *token, uint8_t *out,
                       size_t capacity, size_t *size)
{
    size_t digits = token->span.size - 2;

    if (token->kind != WAL__JSON_STRING || digits % 2 != 0 ||
        digits / 2 > capacity) {
        return false;
    }
    for (size_t i = 0; i < digits / 2; i++) {
        int high = hex_value(token->span.data[1 + 2 * i]);
        int low = hex_value(token->span.data[2 + 2 * i]);

        if (high < 0 || low < 0) {
            return false;
        }
        out[i] = (uint8_t)(high << 4 | low);
    }
    *size = digits / 2;
    return true;
}

static bool decode_number(const struct wal__json_token *token, uint64_t *number)
{
    int64_t value;

    if (token->kind != WAL__JSON_NUMBER ||
        wal__json_integer(token->span, &value) != WAL__JSON_OK) {
        return false;
    }
    *number = (uint64_t)value;
    return true;
}

static bool decode_root(const struct wal__json_member *members,
                        uint8_t out[WAL__PATH_MAX], size_t *size)
{
    const struct wal__json_token *text = &members[ROOT].value;
    bool has_nul = false;

    if (text->kind != WAL__JSON_STRING) {
        return decode_hex(&members[ROOT_HEX].value, out, WAL__PATH_MAX - 1,
                          size);
    }
    return wal__json_unescape(text->span, out, WAL__PATH_MAX - 1, size,
                              &has_nul) == WAL__JSON_OK;
}

/* Older checkpoints, and those that were made before the first entry, have no
 * such member. */
static bool decode_entry(const struct wal__json_token *token,
                         uint8_t out[WAL__ID_MAX], size_t *size)
{
    bool has_nul = false;

    if (token->kind == WAL__JSON_NONE) {
        *size = 0;
        return true;
    }
    return token->kind == WAL__JSON_STRING &&
           wal__json_unescape(token->span, out, WAL__ID_MAX, size, &has_nul) ==
               WAL__JSON_OK &&
           *size > 0 && !has_nul;
}

static bool decode_numbers(const struct wal__json_member *members,
                           struct wal__checkpoint *checkpoint)
{
    uint64_t created = 0;
    bool is_valid =
        decode_number(&members[FILES].value, &checkpoint->files) &&
        decode_number(&members[BYTES].value, &checkpoint->bytes) &&
        decode_number(&members[NEW_BLOBS].value, &checkpoint->new_blobs) &&
        decode_number(&members[NEW_BYTES].value, &checkpoint->new_bytes) &&
        decode_number(&members[CREATED].value, &created);

    checkpoint->created_ms = (int64_t)created;
    return is_valid;
}

enum wal_status wal__checkpoint_decode(struct wal__checkpoint *checkpoint,
                                       struct wal__span id,
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

    if (wal__json_members(value.data, value.size, members, MEMBER_COUNT,
                          NULL) != WAL__JSON_OK ||
        !decode_root(members, root, &root_span.size) || root_span.size == 0 ||
        root[0] != '/' || memchr(root, 0, root_span.size) != NULL ||
        !decode_hex(&members[LIST].value, read.list.bytes, WAL__DIGEST_SIZE,
                    &list_size) ||
        list_size != WAL__DIGEST_SIZE || !decode_numbers(members, &read) ||
        !decode_entry(&members[ENTRY].value, entry, &entry_span.size)) {
        return wal__fail(
            error, WAL_ECORRUPT,
            "the document of checkpoint \"%.*s\" is damaged: a member is "
            "missing or has an invalid "
            "value",
            (int)id.size, (const char *)id.data);
    }
    read.version = version;
    status =
        wal__checkpoint_set_strings(&read, id, root_span, entry_span, error);
    if (status == WAL_OK) {
        *checkpoint = read;
    }
    return status;
}

/* --- one checkpoint ------------------------------------------------------ */

static enum wal_status fail_not_found(struct wal_error *error,
                                      struct wal__span id)
{
    return wal__fail(error, WAL_ENOTFOUND, "there is no checkpoint \"%.*s\"",
                     (int)id.size, (const char *)id.data);
}

enum wal_status wal__checkpoint_get(struct wal_session *session,
                                    struct wal__span id,
                                    struct wal__checkpoint *checkpoint,
                                    struct wal_error *error)
{
    uint8_t key_buffer[WAL__CHECKPOINT_KEY_MAX];
    struct wal__buf value;
    uint64_t version = 0;
    enum wal_status status;

    wal__buf_init(&value, session->core->env.heap);
    status = wal__reserved_doc_get(session, wal__checkpoint_key(id, key_buffer),
                                   &value, &version, error);
    if (status == WAL_OK) {
        const struct wal__span span = {value.data, value.size};

        status = wal__checkpoint_decode(checkpoint, id, span, version, error);
    } else if (status == WAL_ENOTFOUND) {
        fail_not_found(error, id);
    }
    wal__buf_deinit(&value);
    return status;
}

enum wal_status wal__checkpoint_load(struct wal_session *session,
                                     struct wal__span id,
                                     struct wal__checkpoint *checkpoint,
                                     struct wal__files *files,
                                     struct wal_error *error)
{
    enum wal_status status =
        wal__checkpoint_get(session, id, checkpoint, error);

    return status == WAL_OK ? wal__files_load(files, &session->core->blobs,
                                              &checkpoint->list, error)
                            : status;
}

enum wal_status wal__checkpoint_delete(struct wal_session *session,
                                       struct wal__span id,
                                       struct wal_error *error)
{
    uint8_t key_buffer[WAL__CHECKPOINT_KEY_MAX];
    enum wal_status status = wal__reserved_doc_delete(
        session, wal__checkpoint_key(id, key_buffer), error);

    return status == WAL_ENOTFOUND ? fail_not_found(error, id) : status;
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
        *on = status == WAL_ENOTFOUND || value.size != 5 ||
              memcmp(value.data, "false", 5) != 0;
        status = WAL_OK;
    }
    wal__buf_deinit(&value);
    return status;
}

enum wal_status wal__checkpoints_set_enabled(struct wal_session *session,
                                             bool on, struct wal_error *error)
{
    const struct wal__span value = {(const uint8_t *)(on ? "true" : "false"),
                                    on ? 4 : 5};

    return wal__reserved_doc_put(session, enabled_key, value,
                                 WAL__DOC_ANY_VERSION, NULL, error);
}

/* --- roots --------------------------------------------------------------- */

static enum wal_status copy_cwd(struct wal_session *session,
                                uint8_t out[WAL__PATH_MAX], size_t *size,
                                struct wal_error *error)
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

enum wal_status wal__checkpoint_normalize_root(struct wal_session *session,
                                               struct wal__span root,
                                               char out[WAL__PATH_MAX],
                                               struct wal_error *error)
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
        return wal__invalid(
            error,
            "no root given, and the session has no working directory; give "
            "a root");
    }
    while (root.size > 1 && root.size <= WAL__PATH_MAX &&
           root.data[root.size - 1] == '/') {
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
