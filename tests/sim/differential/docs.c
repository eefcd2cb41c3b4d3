/*
 * docs.c - operations on one head or one document
 * (differential.h).
 */
#include <string.h>

#include "tests/sim/differential/differential.h"

static const struct wal_slice nothing = {NULL, 0};

void differential_move_head(struct differential *run)
{
    uint32_t number = differential_session(run);
    char previous[256] = "";
    char wanted[256] = "";
    struct wal_session *session;
    struct wal_head head;
    enum wal_status status;

    session = number == 0 ? NULL : differential_handle(run, number);
    if (session == NULL) {
        return;
    }
    differential_head(run, number, &head);
    if (differential_one_in(run, 3)) {
        head.flags |= WAL_HEAD_EXPECT;
        (void)reference_head_get(run->ref, number, head.stream, head.name,
                                 &head.expected);
    }
    switch (differential_random(run, 12)) {
    case 0:
    case 1:
        head.entry_id = nothing;
        break;
    case 2:
        head.entry_id = differential_slice("no entry");
        break;
    case 3:
        head.flags |= WAL_HEAD_EXPECT;
        head.expected = differential_slice("elsewhere");
        break;
    case 4:
        head.stream++;
        break;
    case 5:
        head.note = differential_random_bytes(run, 4097, 'n');
        break;
    case 6:
        head.name = differential_random_bytes(run, 256, 'n');
        break;
    default:
        break;
    }
    status = wal_head_move(session, &head, previous, &run->error);
    differential_enter_reference(run);
    if (differential_compare_status(run, status,
                                    reference_head_move(run->ref, number, &head,
                                                        wanted,
                                                        &run->expected))) {
        differential_check_slice(run, "the head before",
                                 differential_slice(previous),
                                 differential_slice(wanted));
    }
    differential_check_heads(run, number);
    differential_check_session(run, number);
}

void differential_get_head(struct differential *run)
{
    static const char *const names[] = {"", "main", "left", "right", "nobody"};
    struct wal_slice name =
        differential_slice(names[differential_random(run, 5)]);
    uint32_t stream = differential_random(run, DIFFERENTIAL_STREAMS);
    uint32_t number = differential_session(run);
    struct wal_session *session;
    struct wal_slice wanted = {NULL, 0};
    enum wal_status status;
    char id[256];

    session = number == 0 ? NULL : differential_handle(run, number);
    if (session == NULL) {
        return;
    }
    status = wal_head_get(session, stream, name, id, &run->error);
    if (differential_compare_status(
            run, status,
            reference_head_get(run->ref, number, stream, name, &wanted))) {
        differential_check_slice(run, "a head", differential_slice(id), wanted);
    }
    differential_check_heads(run, number);
}

/* ----------------------------------------------------------- documents --- */

/* A session, or the store; false: there is no session. */
static bool choose(struct differential *run, uint32_t *number,
                   struct wal_session **session)
{
    *session = NULL;
    *number = REFERENCE_STORE;
    if (!differential_one_in(run, 4)) {
        *number = differential_session(run);
        *session = *number == 0 ? NULL : differential_handle(run, *number);
        return *session != NULL;
    }
    return true;
}

static void invalidate(struct differential *run, struct wal_doc *doc)
{
    switch (differential_random(run, 5)) {
    case 0:
        doc->value = differential_slice("{\"open\":");
        break;
    case 1:
        doc->key = nothing;
        break;
    case 2:
        doc->key = differential_random_bytes(run, 1025, 'k');
        break;
    case 3:
        doc->flags |= 1u << 7;
        break;
    default:
        doc->flags |= WAL_DOC_EXPECT;
        doc->version += 1;
        break;
    }
}

void differential_put_doc(struct differential *run)
{
    struct wal_session *session;
    struct wal_doc doc;
    uint64_t version = 0;
    uint64_t wanted = 0;
    enum wal_status status;
    uint32_t number;

    if (!choose(run, &number, &session)) {
        return;
    }
    differential_doc(run, number, session == NULL, &doc);
    if (differential_one_in(run, 5)) {
        invalidate(run, &doc);
    }
    status = wal_doc_put(run->store, session, &doc, &version, &run->error);
    differential_enter_reference(run);
    if (differential_compare_status(run, status,
                                    reference_doc_put(run->ref, number, &doc,
                                                      &wanted,
                                                      &run->expected))) {
        differential_check_number(run, "the new version", version, wanted);
        differential_check_doc_get(run, number, doc.key, 0);
    }
}

void differential_delete_doc(struct differential *run)
{
    struct wal_session *session;
    struct wal_doc doc;
    uint64_t version = 0;
    uint64_t wanted = 0;
    enum wal_status status;
    uint32_t number;

    if (!choose(run, &number, &session)) {
        return;
    }
    differential_doc(run, number, session == NULL, &doc);
    doc.value = nothing;
    if (differential_one_in(run, 8)) {
        doc.flags |= WAL_DOC_EXPECT;
        doc.version += 1;
    }
    status = wal_doc_delete(run->store, session, &doc, &version, &run->error);
    differential_enter_reference(run);
    if (differential_compare_status(run, status,
                                    reference_doc_delete(run->ref, number, &doc,
                                                         &wanted,
                                                         &run->expected))) {
        differential_check_number(run, "the new version", version, wanted);
    }
    differential_check_doc_get(run, number, doc.key, 0);
}
