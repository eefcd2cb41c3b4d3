/*
 * test_store_shipping.c - tests of WAL_CLUSTER: appends that wait until the
 * process that ships the store reports them (agentwal/replica.h).
 */
#include "tests/lib/kit/store_kit.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agentwal/replica.h"
#include "format/bytes/assert.h"

static uint64_t last_of(struct wal_store *store)
{
    struct wal_store_info info = WAL_INIT(wal_store_info);

    WAL__ASSERT(wal_store_get_info(store, &info, NULL) == WAL_OK);
    return info.last_sequence;
}

static struct wal_shipper *open_shipper(struct wal_store *store)
{
    struct wal_shipper *shipper = NULL;

    assert_ok(wal_shipper_open(store, &shipper, NULL));
    return shipper;
}

static const struct wal_append_options cluster = {
    .struct_size = sizeof(cluster), .durability = WAL_CLUSTER};

static enum wal_status append(struct wal_session *session, const char *id,
                              struct wal_append_result *result,
                              struct wal_error *error)
{
    struct wal_entry entry = kit_entry(id, "", "{}");

    return wal_append(session, &entry, 1, &cluster, result, error);
}

/* An append in a separate thread. */
struct appending {
    struct wal_session *session;
    const char *id;
    struct wal_append_result result;
    _Atomic int done;
    enum wal_status status;
    struct wal_error error;
    pthread_t thread;
};

static void *append_main(void *arg)
{
    struct appending *appending = arg;

    appending->result.struct_size = sizeof(appending->result);
    appending->status = append(appending->session, appending->id,
                               &appending->result, &appending->error);
    atomic_store(&appending->done, 1);
    return NULL;
}

static void start(struct appending *appending, struct wal_session *session,
                  const char *id)
{
    *appending =
        (struct appending){.session = session, .id = id, .error = KIT_ERROR};
    assert_int_equal(
        pthread_create(&appending->thread, NULL, append_main, appending), 0);
}

static enum wal_status finish(struct appending *appending)
{
    assert_int_equal(pthread_join(appending->thread, NULL), 0);
    return appending->status;
}

/* --- nothing ships ------------------------------------------------------- */

KIT_TEST(store_shipping__no_shipper_nothing_is_written)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_append_result result = WAL_INIT(wal_append_result);
    struct wal_error error = KIT_ERROR;
    struct wal_ticket *ticket = NULL;
    struct wal_entry entry = kit_entry("b", "", "{}");
    const uint64_t before = last_of(store);
    uint64_t sequence = 0;

    assert_int_equal(append(session, "a", &result, &error), WAL_EREMOTE);
    assert_non_null(strstr(error.text, "no process ships the store"));
    assert_int_equal(result.sequence, 0);
    assert_string_equal(result.last_id, "");
    assert_int_equal(wal_submit(session, &entry, 1, &cluster, &ticket, &error),
                     WAL_EREMOTE);
    assert_int_equal(last_of(store), before);
    assert_int_equal(wal_store_wait(store, &sequence, WAL_CLUSTER, -1, &error),
                     WAL_EREMOTE);
}

KIT_TEST(store_shipping__noop_store_takes_it)
{
    struct wal_store *store = kit_open(NULL, WAL_OPEN_NOOP);
    struct wal_session *session = kit_create(store, "s");
    struct wal_shipper *shipper = NULL;
    uint64_t sequence = UINT64_MAX;

    assert_ok(append(session, "a", NULL, NULL));
    assert_int_equal(wal_store_wait(store, &sequence, WAL_CLUSTER, 0, NULL),
                     WAL_EBUSY);
    assert_int_equal(wal_shipper_open(store, &shipper, NULL), WAL_EINVAL);
}

/* --- reports ------------------------------------------------------------- */

KIT_TEST(store_shipping__append_waits_for_the_report)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_shipper *shipper = open_shipper(store);
    struct appending appending;
    uint64_t sequence = last_of(store);

    start(&appending, session, "a");
    assert_ok(wal_store_wait(store, &sequence, WAL_DURABLE, 10000, NULL));
    assert_ok(wal_shipper_report(shipper, sequence - 1, WAL_OK, NULL));
    kit_pause_ms(30);
    assert_int_equal(atomic_load(&appending.done), 0);
    assert_ok(wal_shipper_report(shipper, sequence, WAL_OK, NULL));
    assert_ok(finish(&appending));
    assert_int_equal(appending.result.sequence, sequence);
    /* The same again: nothing is appended, and it is stored. */
    assert_ok(append(session, "a", NULL, NULL));
    wal_shipper_close(shipper);
}

KIT_TEST(store_shipping__duplicate_that_is_not_stored_waits)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_shipper *shipper = open_shipper(store);
    struct wal_entry entry = kit_entry("a", "", "{}");
    struct appending appending;

    assert_ok(wal_append(session, &entry, 1, NULL, NULL, NULL));
    start(&appending, session, "a");
    kit_pause_ms(30);
    assert_int_equal(atomic_load(&appending.done), 0);
    assert_ok(wal_shipper_report(shipper, last_of(store), WAL_OK, NULL));
    assert_ok(finish(&appending));
    assert_int_equal(appending.result.duplicates, 1);
    wal_shipper_close(shipper);
}

KIT_TEST(store_shipping__failure_ends_the_wait_of_a_durable_entry)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_shipper *shipper = open_shipper(store);
    struct appending appending;
    uint64_t sequence = last_of(store);

    start(&appending, session, "a");
    assert_ok(wal_store_wait(store, &sequence, WAL_DURABLE, 10000, NULL));
    kit_pause_ms(30); /* until it waits: only later failures are its own */
    while (atomic_load(&appending.done) == 0) {
        assert_ok(wal_shipper_report(shipper, 0, WAL_EFENCED, NULL));
        kit_pause_ms(1);
    }
    assert_int_equal(finish(&appending), WAL_EFENCED);
    assert_int_equal(appending.result.sequence, sequence);
    assert_int_equal(appending.result.appended, 1);
    assert_string_equal(appending.result.last_id, "");
    assert_branch(session, "a");
    assert_int_equal(wal_shipper_report(shipper, 0, 1, NULL), WAL_EINVAL);
    wal_shipper_close(shipper);
}

KIT_TEST(store_shipping__shipper_closes_while_one_waits)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_shipper *shipper = open_shipper(store);
    struct appending appending;
    uint64_t sequence = last_of(store);

    start(&appending, session, "a");
    assert_ok(wal_store_wait(store, &sequence, WAL_DURABLE, 10000, NULL));
    wal_shipper_close(shipper);
    assert_int_equal(finish(&appending), WAL_EREMOTE);
    assert_non_null(strstr(appending.error.text, "it is durable here"));
}

KIT_TEST(store_shipping__ticket_waits_after_it_is_durable)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_shipper *shipper = open_shipper(store);
    struct wal_append_result result = WAL_INIT(wal_append_result);
    struct wal_entry entry = kit_entry("a", "", "{}");
    struct wal_ticket *ticket = NULL;
    uint64_t sequence = last_of(store);

    assert_ok(wal_submit(session, &entry, 1, &cluster, &ticket, NULL));
    assert_ok(wal_store_wait(store, &sequence, WAL_DURABLE, 10000, NULL));
    assert_int_equal(wal_ticket_wait(ticket, 50, &result, NULL), WAL_EBUSY);
    assert_ok(wal_shipper_report(shipper, sequence, WAL_OK, NULL));
    assert_ok(wal_ticket_wait(ticket, -1, &result, NULL));
    assert_int_equal(result.sequence, sequence);
    wal_ticket_destroy(ticket);
    wal_shipper_close(shipper);
}

/* --- several ------------------------------------------------------------- */

KIT_TEST(store_shipping__second_shipper_is_refused)
{
    struct wal_store *store = kit_store();
    struct wal_store *other = kit_open("store", 0);
    struct wal_shipper *shipper = open_shipper(store);
    struct wal_shipper *second = NULL;
    struct wal_error error = KIT_ERROR;

    assert_int_equal(wal_shipper_open(store, &second, &error), WAL_ELOCKED);
    assert_int_equal(wal_shipper_open(other, &second, &error), WAL_ELOCKED);
    wal_shipper_close(shipper);
    second = open_shipper(other);
    wal_shipper_close(second);
}

/* The next shipper may store elsewhere: what the last one reported is void. */
KIT_TEST(store_shipping__new_shipper_begins_with_nothing)
{
    struct wal_store *store = kit_store();
    struct wal_shipper *shipper = open_shipper(store);
    uint64_t sequence = 0;

    assert_ok(wal_shipper_report(shipper, 1000, WAL_OK, NULL));
    assert_ok(wal_store_wait(store, &sequence, WAL_CLUSTER, 0, NULL));
    assert_int_equal(sequence, 1000);
    wal_shipper_close(shipper);
    shipper = open_shipper(store);
    sequence = 0;
    assert_int_equal(wal_store_wait(store, &sequence, WAL_CLUSTER, 0, NULL),
                     WAL_EBUSY);
    wal_shipper_close(shipper);
}

/* The process is made before this one has threads. */
KIT_TEST(store_shipping__shipping_process_is_killed)
{
    struct wal_store *store;
    struct wal_session *session;
    int ready[2];
    char byte = 0;
    pid_t child;

    assert_int_equal(pipe(ready), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct wal_open_options options = {.struct_size = sizeof(options),
                                                 .flags = WAL_OPEN_CREATE};
        struct wal_store *own = NULL;
        struct wal_shipper *shipper = NULL;

        if (wal_open("store", &options, &own, NULL) != WAL_OK ||
            wal_shipper_open(own, &shipper, NULL) != WAL_OK ||
            wal_shipper_report(shipper, 100, WAL_OK, NULL) != WAL_OK ||
            write(ready[1], "x", 1) != 1) {
            _exit(1);
        }
        pause();
        _exit(2);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    store = kit_open("store", 0);
    session = kit_create(store, "s");
    assert_ok(append(session, "a", NULL, NULL));
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(append(session, "b", NULL, NULL), WAL_EREMOTE);
}

KIT_TEST(store_shipping__handles_that_cannot_ship)
{
    struct wal_store *store = kit_store();
    struct wal_store *reader = kit_open("store", WAL_OPEN_READ_ONLY);
    struct wal_store *memory = kit_open("none", WAL_OPEN_MEMORY);
    struct wal_shipper *shipper = NULL;

    assert_int_equal(wal_shipper_open(NULL, &shipper, NULL), WAL_EINVAL);
    assert_int_equal(wal_shipper_open(store, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_shipper_open(reader, &shipper, NULL), WAL_EREADONLY);
    assert_int_equal(wal_shipper_open(memory, &shipper, NULL), WAL_EINVAL);
    assert_int_equal(wal_shipper_report(NULL, 1, WAL_OK, NULL), WAL_EINVAL);
    wal_shipper_close(NULL);
}

KIT_TEST(store_shipping__store_is_closed_first)
{
    struct wal_store *store = kit_store();
    struct wal_store *other = NULL;
    struct wal_shipper *shipper = open_shipper(store);

    assert_int_equal(wal_close(store, NULL), WAL_EBUSY);
    assert_int_equal(wal_shipper_report(shipper, 1, WAL_OK, NULL), WAL_ECLOSED);
    other = kit_open("store", 0);
    wal_shipper_close(shipper);
    shipper = open_shipper(other);
    wal_shipper_close(shipper);
}
