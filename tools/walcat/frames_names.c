/*
 * frames_names.c - see frames_names.h.
 *
 * Threads: any.
 */
#include "tools/walcat/frames_names.h"

#include "format/segment/record.h"

static size_t names_of_session(uint32_t version, struct wal__span payload,
                               struct walcat_name *names)
{
    struct wal__session_record session;

    if (wal__session_record_decode(payload, version, &session) != WAL__FMT_OK) {
        return 0;
    }
    names[0] = (struct walcat_name){"id", session.id};
    return 1;
}

static size_t names_of_entry(struct wal__span payload,
                             struct walcat_name *names)
{
    struct wal__entry_record entry;

    if (wal__entry_record_decode(payload, &entry) != WAL__FMT_OK) {
        return 0;
    }
    names[0] = (struct walcat_name){"id", entry.id};
    return 1;
}

static size_t names_of_fork(struct wal__span payload, struct walcat_name *names)
{
    struct wal__fork_record fork;

    if (wal__fork_record_decode(payload, &fork) != WAL__FMT_OK) {
        return 0;
    }
    names[0] = (struct walcat_name){"source", fork.source_id};
    names[1] = (struct walcat_name){"target", fork.entry_id};
    return 2;
}

static size_t names_of_head(struct wal__span payload, struct walcat_name *names)
{
    struct wal__head_record head;

    if (wal__head_record_decode(payload, &head) != WAL__FMT_OK) {
        return 0;
    }
    names[0] = (struct walcat_name){"head", head.name};
    names[1] = (struct walcat_name){"target", head.entry_id};
    return 2;
}

static size_t names_of_doc(struct wal__span payload, struct walcat_name *names)
{
    struct wal__doc_record doc;

    if (wal__doc_record_decode(payload, &doc) != WAL__FMT_OK) {
        return 0;
    }
    names[0] = (struct walcat_name){"key", doc.key};
    return 1;
}

static size_t names_of_redact(struct wal__span payload,
                              struct walcat_name *names)
{
    struct wal__redact_record redact;

    if (wal__redact_record_decode(payload, &redact) != WAL__FMT_OK) {
        return 0;
    }
    names[0] = (struct walcat_name){"target", redact.target_id};
    names[1] = (struct walcat_name){"redaction", redact.entry_id};
    return 2;
}

size_t walcat_record_names(uint32_t version, const struct wal__frame *frame,
                           const uint8_t *bytes,
                           struct walcat_name names[WALCAT_NAMES_MAX])
{
    const struct wal__span payload = {bytes, frame->stored_size};

    if (bytes == NULL || (frame->flags & WAL__FRAME_LZ4) != 0) {
        return 0;
    }
    switch (frame->type) {
    case WAL__FRAME_SESSION:
        return names_of_session(version, payload, names);
    case WAL__FRAME_ENTRY:
        return names_of_entry(payload, names);
    case WAL__FRAME_FORK:
        return names_of_fork(payload, names);
    case WAL__FRAME_HEAD:
        return names_of_head(payload, names);
    case WAL__FRAME_DOC:
    case WAL__FRAME_DOC_DELETE:
        return names_of_doc(payload, names);
    case WAL__FRAME_REDACT:
        return names_of_redact(payload, names);
    default:
        return 0;
    }
}
