/*
 * look.c - a comparison of the whole store, or of a session that others write
 * to, with the ledger (ledger.h).
 */
#include <stdlib.h>
#include <string.h>

#include "format/bytes/assert.h"
#include "tests/sim/ledger/internal.h"

/* The list names the sessions that were found, and no others. */
static void check_list(const struct ledger_checker *checker)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_session_cursor *list = NULL;
    int64_t updated_ms = INT64_MAX;
    uint64_t sequence = UINT64_MAX;
    uint32_t listed = 0;
    uint32_t there = 0;
    enum wal_status status =
        wal_session_cursor_open(checker->store, NULL, &list, &error);

    for (uint32_t i = 0; i < checker->ledger->session_count; i++) {
        there += checker->view->sessions[i];
    }
    while (status == WAL_OK) {
        info.struct_size = sizeof(info);
        status = wal_session_cursor_next(list, &info, &error);
        if (status == WAL_OK) {
            /* A test may have sessions that the ledger does not know. */
            listed += ((const char *)info.id.data)[0] == 's';
            if (info.updated_ms > updated_ms ||
                (info.updated_ms == updated_ms &&
                 info.last_sequence >= sequence)) {
                ledger_fail("the list is not in order");
            }
            updated_ms = info.updated_ms;
            sequence = info.last_sequence;
        }
    }
    wal_session_cursor_close(list);
    if (status != WAL_END || listed != there) {
        ledger_fail("the list names %u sessions of %u: %d", listed, there,
                    status);
    }
}

struct ledger_checker *ledger_checker_create(void)
{
    struct ledger_checker *checker = calloc(1, sizeof(*checker));

    WAL__ASSERT(checker != NULL);
    checker->view = calloc(1, sizeof(*checker->view));
    WAL__ASSERT(checker->view != NULL);
    return checker;
}

void ledger_checker_destroy(struct ledger_checker *checker)
{
    if (checker != NULL) {
        free(checker->view);
        free(checker);
    }
}

/* Forgets what was seen before. Others may add to the ledger meanwhile. */
static void begin_check(struct ledger_checker *checker,
                        const struct ledger *ledger, struct wal_store *store,
                        const struct ledger_look *look)
{
    struct ledger_view *view = checker->view;

    checker->ledger = ledger;
    checker->store = store;
    checker->look = look;
    checker->refused = false;
    checker->session = look == NULL ? LEDGER_NONE : look->session;
    checker->handle = look == NULL ? NULL : look->handle;
    memset(view->entries, 0, sizeof(view->entries));
    memset(view->sessions, 0, sizeof(view->sessions));
    memset(view->blobs, 0, sizeof(view->blobs));
    memset(view->parts, 0, sizeof(view->parts));
    memset(view->versions, 0, sizeof(view->versions));
    view->digest = 0;
}

bool ledger_look(struct ledger_checker *checker, const struct ledger *ledger,
                 struct wal_store *store, const struct ledger_look *look,
                 const struct ledger_view **view)
{
    begin_check(checker, ledger, store, look);
    checker->view->sessions[look->session] = true;
    ledger_read_stream(checker, 0);
    if (!checker->refused) {
        ledger_check_documents(checker);
    }
    if (!checker->refused) {
        ledger_check_heads(checker);
    }
    if (checker->refused) {
        return false;
    }
    ledger_check_batches(checker, LEDGER_NO_LOSS);
    *view = checker->view;
    return true;
}

void ledger_check(const struct ledger *ledger, struct wal_store *store,
                  enum ledger_loss loss, struct ledger_view *view)
{
    static struct ledger_checker *checker;

    if (checker == NULL) {
        checker = ledger_checker_create();
    }
    begin_check(checker, ledger, store, NULL);
    ledger_check_documents(checker);
    for (uint32_t i = 0; i < ledger->session_count; i++) {
        checker->session = i;
        ledger_read_session(checker);
    }
    check_list(checker);
    ledger_check_blobs(checker, loss);
    ledger_check_redactions(checker);
    ledger_check_batches(checker, loss);
    if (view != NULL) {
        *view = *checker->view;
    }
}
