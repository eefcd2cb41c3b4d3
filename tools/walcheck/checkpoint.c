/*
 * checkpoint.c - decodes the documents of checkpoints and the lists of files
 * that they name (SPEC.md 2.21, 5.13).
 *
 * Threads: any, each with its own reader.
 */
#include <string.h>

#include "format/json/json_scan.h"
#include "format/json/json_text.h"
#include "tools/walcheck/pack.h"

static const char prefix[] = "\0checkpoint/";

enum {
    PREFIX_SIZE = sizeof(prefix) - 1,
    ROOT_MAX = 8192
};

bool check_key_is_checkpoint(struct wal__span key)
{
    return key.size > PREFIX_SIZE && memcmp(key.data, prefix, PREFIX_SIZE) == 0;
}

/* Decodes hexadecimal text between quotes; false if it is invalid or too
 * long. */
static bool read_hex(struct wal__json_span text, uint8_t *out, size_t capacity,
                     size_t *size)
{
    if (text.size % 2 != 0 || text.size / 2 - 1 > capacity) {
        return false;
    }
    *size = text.size / 2 - 1;
    return wal__hex_read(text.data + 1, *size, out);
}

static bool find(const struct wal__doc_record *doc, const char *key,
                 enum wal__json_kind kind, struct wal__json_token *token)
{
    return wal__json_find(doc->value.data, doc->value.size, key, token) ==
               WAL__JSON_OK &&
           token->kind == kind;
}

bool check_checkpoint_list(const struct wal__doc_record *doc,
                           struct wal__digest *list)
{
    struct wal__json_token token;
    size_t size;

    return find(doc, "list", WAL__JSON_STRING, &token) &&
           read_hex(token.span, list->bytes, sizeof(list->bytes), &size) &&
           size == sizeof(list->bytes);
}

/* Whether the checkpoint has a root, as text or as bytes. */
static bool check_root(const struct wal__doc_record *doc)
{
    struct wal__json_token token;
    uint8_t root[ROOT_MAX];
    size_t size = 0;

    if (find(doc, "root", WAL__JSON_STRING, &token)) {
        return wal__json_unescape(token.span, root, sizeof(root), &size,
                                  NULL) == WAL__JSON_OK;
    }
    return find(doc, "rootHex", WAL__JSON_STRING, &token) &&
           read_hex(token.span, root, sizeof(root), &size);
}

/* Whether the entry that the checkpoint is linked with has a valid id. A fork
 * that was made at an older entry shares the checkpoint and not the entry, so
 * that a link to an entry which the session does not have is no damage. */
static bool check_entry(const struct wal__doc_record *doc)
{
    struct wal__json_token token;
    uint8_t id[WAL__ID_MAX];
    size_t size = 0;

    return wal__json_find(doc->value.data, doc->value.size, "entry", &token) !=
               WAL__JSON_OK ||
           (token.kind == WAL__JSON_STRING &&
            wal__json_unescape(token.span, id, sizeof(id), &size, NULL) ==
                WAL__JSON_OK &&
            size > 0);
}

bool check_checkpoint_decode(const struct wal__doc_record *doc,
                             struct check_checkpoint *checkpoint)
{
    if (!check_key_is_checkpoint(doc->key) ||
        !check_checkpoint_list(doc, &checkpoint->list) || !check_root(doc) ||
        !check_entry(doc)) {
        return false;
    }
    checkpoint->id.data = doc->key.data + PREFIX_SIZE;
    checkpoint->id.size = doc->key.size - PREFIX_SIZE;
    return true;
}

/* --- lists ---------------------------------------------------------------- */

static bool add_piece(void *ctx, struct wal__span piece)
{
    struct check_list *list = ctx;

    while (list->capacity - list->size < piece.size) {
        list->capacity = list->capacity * 2 + WAL__CHUNK_MAX;
        list->bytes = cli_realloc(list->bytes, list->capacity);
    }
    if (piece.size > 0) {
        memcpy(list->bytes + list->size, piece.data, piece.size);
    }
    list->size += piece.size;
    return true;
}

const char *check_list_read(struct check_reader *reader,
                            const struct wal__digest *digest,
                            struct check_list *list)
{
    const struct check_blob *blob =
        check_blobs_find(&reader->store->blobs, digest);
    uint64_t culprit;

    list->size = 0;
    if (blob == NULL) {
        return "it is missing";
    }
    if (blob->fault != NULL) {
        return blob->fault;
    }
    return check_reader_read(reader, blob, add_piece, list, &culprit);
}
