/*
 * record_doc.c - encodes and decodes the payloads of DOC, DOC_DELETE and REDACT
 * (SPEC.md 2.14, 2.15).
 *
 * Invariant: a decoder accepts a payload only if its sizes add up to the
 * payload's size, so the returned spans are inside the payload. Threads: any.
 */
#include "format/segment/record.h"

#include "format/bytes/bytes.h"
#include "format/segment/record_text.h"

/* DOC and DOC_DELETE (2.14) */

enum {
    DOC_MODIFIED = 0,
    DOC_KEY_SIZE = 8,
    DOC_ZERO = 10,
    DOC_VALUE_SIZE = 12,
    DOC_TEXTS = 16
};

WAL__FOLLOWS(DOC_KEY_SIZE, DOC_MODIFIED, 8);
WAL__FOLLOWS(DOC_ZERO, DOC_KEY_SIZE, 2);
WAL__FOLLOWS(DOC_VALUE_SIZE, DOC_ZERO, 2);
WAL__FOLLOWS(DOC_TEXTS, DOC_VALUE_SIZE, 4);

size_t wal__doc_record_size(const struct wal__doc_record *doc)
{
    return DOC_TEXTS + doc->key.size + doc->value.size;
}

void wal__doc_record_encode(const struct wal__doc_record *doc, uint8_t *out)
{
    uint8_t *at = out + DOC_TEXTS;

    wal__put64(out + DOC_MODIFIED, (uint64_t)doc->modified_ms);
    wal__put_text_size16(out + DOC_KEY_SIZE, doc->key);
    wal__put16(out + DOC_ZERO, 0);
    wal__put_text_size32(out + DOC_VALUE_SIZE, doc->value);
    at = wal__put_text(at, doc->key);
    at = wal__put_text(at, doc->value);
    WAL__ASSERT(at == out + wal__doc_record_size(doc));
}

enum wal__fmt wal__doc_record_decode(struct wal__span payload,
                                     struct wal__doc_record *doc)
{
    const uint8_t *at = payload.data;
    struct wal__doc_record read = {0};

    if (payload.size < DOC_TEXTS) {
        return WAL__FMT_SHORT;
    }
    read.modified_ms = (int64_t)wal__get64(at + DOC_MODIFIED);
    read.key.size = wal__get16(at + DOC_KEY_SIZE);
    read.value.size = wal__get32(at + DOC_VALUE_SIZE);
    if (read.key.size == 0 || read.key.size > WAL__KEY_MAX ||
        wal__get16(at + DOC_ZERO) != 0 || read.value.size > WAL__PAYLOAD_MAX ||
        wal__doc_record_size(&read) != payload.size) {
        return WAL__FMT_FIELD;
    }
    at += DOC_TEXTS;
    read.key = wal__get_text(&at, read.key.size);
    read.value = wal__get_text(&at, read.value.size);
    WAL__ASSERT(at == payload.data + payload.size);
    *doc = read;
    return WAL__FMT_OK;
}

bool wal__doc_record_key(struct wal__span first, struct wal__span *key)
{
    size_t size;

    if (first.size < DOC_TEXTS) {
        return false;
    }
    size = wal__get16(first.data + DOC_KEY_SIZE);
    if (size == 0 || size > WAL__KEY_MAX || size > first.size - DOC_TEXTS) {
        return false;
    }
    key->data = first.data + DOC_TEXTS;
    key->size = size;
    return true;
}

/* REDACT (2.15) */

enum {
    REDACT_ENTRY_SIZE = 0,
    REDACT_TARGET_SIZE = 1,
    REDACT_REASON_SIZE = 2,
    REDACT_SESSION = 4,
    REDACT_TEXTS = 8
};

WAL__FOLLOWS(REDACT_TARGET_SIZE, REDACT_ENTRY_SIZE, 1);
WAL__FOLLOWS(REDACT_REASON_SIZE, REDACT_TARGET_SIZE, 1);
WAL__FOLLOWS(REDACT_SESSION, REDACT_REASON_SIZE, 2);
WAL__FOLLOWS(REDACT_TEXTS, REDACT_SESSION, 4);

size_t wal__redact_record_size(const struct wal__redact_record *redact)
{
    return REDACT_TEXTS + redact->entry_id.size + redact->target_id.size +
           redact->reason.size;
}

void wal__redact_record_encode(const struct wal__redact_record *redact,
                               uint8_t *out)
{
    uint8_t *at = out + REDACT_TEXTS;

    wal__put_text_size8(out + REDACT_ENTRY_SIZE, redact->entry_id);
    wal__put_text_size8(out + REDACT_TARGET_SIZE, redact->target_id);
    wal__put_text_size16(out + REDACT_REASON_SIZE, redact->reason);
    wal__put32(out + REDACT_SESSION, redact->session);
    at = wal__put_text(at, redact->entry_id);
    at = wal__put_text(at, redact->target_id);
    at = wal__put_text(at, redact->reason);
    WAL__ASSERT(at == out + wal__redact_record_size(redact));
}

enum wal__fmt wal__redact_record_decode(struct wal__span payload,
                                        struct wal__redact_record *redact)
{
    const uint8_t *at = payload.data;
    struct wal__redact_record read = {0};

    if (payload.size < REDACT_TEXTS) {
        return WAL__FMT_SHORT;
    }
    read.entry_id.size = at[REDACT_ENTRY_SIZE];
    read.target_id.size = at[REDACT_TARGET_SIZE];
    read.reason.size = wal__get16(at + REDACT_REASON_SIZE);
    read.session = wal__get32(at + REDACT_SESSION);
    if (read.entry_id.size == 0 || read.target_id.size == 0 ||
        read.reason.size > WAL__TEXT_MAX || read.session == 0 ||
        wal__redact_record_size(&read) != payload.size) {
        return WAL__FMT_FIELD;
    }
    at += REDACT_TEXTS;
    read.entry_id = wal__get_text(&at, read.entry_id.size);
    read.target_id = wal__get_text(&at, read.target_id.size);
    read.reason = wal__get_text(&at, read.reason.size);
    WAL__ASSERT(at == payload.data + payload.size);
    *redact = read;
    return WAL__FMT_OK;
}
