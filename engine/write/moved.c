/*
 * moved.c - the refusal of appends to a session that has moved (moved.h).
 */
#include "engine/write/moved.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/base/moved_document.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"

/* Reads the document of the session under the state lock; false: it is not
 * there. */
static bool read_move(struct wal__core *core, uint32_t number,
                      struct wal__span id, struct wal__record_buf *scratch,
                      struct wal_session_move *move)
{
    const struct wal__span key = wal__moved_key();
    struct wal__branch_slot *slot = NULL;
    const struct wal__document *document;
    struct wal__doc_record record;
    struct wal__frame frame;
    struct wal__span payload;

    if (wal__core_load_documents(core, number, &slot, NULL) != WAL_OK ||
        slot == NULL) {
        return false;
    }
    document =
        wal__documents_find(&slot->documents, wal__id_hash(key.data, key.size));
    return document != NULL &&
           wal__log_read(
               &core->log,
               wal__documents_newest(&slot->documents, document)->position,
               scratch, &frame, &payload, NULL) == WAL_OK &&
           frame.type == WAL__FRAME_DOC &&
           wal__doc_record_decode(payload, &record) == WAL__FMT_OK &&
           wal__moved_decode(record.value, id, move);
}

enum wal_status wal__moved_fail(struct wal__core *core,
                                const struct wal__summary *summary,
                                struct wal_error *error)
{
    struct wal_session_move move = WAL_INIT(wal_session_move);
    const uint32_t number = summary->number;
    const size_t size = summary->id.size;
    char id[WAL_ID_SIZE];
    struct wal__record_buf scratch;

    /* Loading documents may move the texts of the summary. */
    WAL__ASSERT(size < sizeof(id));
    memcpy(id, summary->id.data, size);
    id[size] = '\0';
    wal__record_buf_init(&scratch, core->env.heap);
    if (!read_move(core, number, (struct wal__span){(const uint8_t *)id, size},
                   &scratch, &move) ||
        move.host[0] == '\0') {
        (void)snprintf(move.host, sizeof(move.host), "another machine");
    }
    wal__record_buf_deinit(&scratch);
    return wal__fail(error, WAL_ECLAIMED,
                     "the session has moved to %s; go on with it there, fork "
                     "it, or take it back with: agentwal resume --take-back %s",
                     move.host, id);
}
