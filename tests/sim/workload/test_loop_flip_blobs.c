/*
 * test_loop_flip_blobs.c - a bit of the blob stream or of its indexes is flipped: the store opens,
 * the log is as it was, and every content is as it was or refused (SPEC.md 3.8). An index is made
 * again: nothing is lost by it.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/test.h"
#include "tests/sim/workload/workload.h"

enum { PATHS_MAX = 32, PATH_SIZE = 64 };

struct rest {
    struct workload *workload;
    char paths[PATHS_MAX][PATH_SIZE];
    uint32_t path_count;
    uint64_t flips;
    uint64_t refused; /* with_blobs, in all */
};

static void on_call(void *arg, const struct sim_event *event)
{
    struct rest *rest = arg;

    if (event->call != SIM_OPEN || event->sys_errno != 0 || strstr(event->path, "pack") == NULL ||
        !sim_file_exists(rest->workload->disk, event->path)) {
        return;
    }
    for (uint32_t i = 0; i < rest->path_count; i++) {
        if (strcmp(rest->paths[i], event->path) == 0) {
            return;
        }
    }
    assert_true(rest->path_count < PATHS_MAX && strlen(event->path) < PATH_SIZE);
    (void)snprintf(rest->paths[rest->path_count], PATH_SIZE, "%s", event->path);
    rest->path_count++;
}

/* A life of some steps; then closed, or killed where it is. What is there is promised from then
 * on. */
static void leave(struct rest *rest, uint64_t seed, bool closed)
{
    rest->workload = workload_create(
        &(struct workload_options){.seed = seed, .actors = 1, .large_every = 6, .blobs_every = 1});
    sim_disk_on_call(rest->workload->disk, on_call, rest);
    workload_run(rest->workload, 60);
    workload_crash(rest->workload, NULL, 0);
    (void)workload_recover(rest->workload, LEDGER_NO_LOSS, WORKLOAD_CLOSE);
    if (!closed) {
        /* One more content, with no mark and no index after it. */
        if (workload_open(rest->workload, 0) != WAL_OK ||
            workload_probe(rest->workload, 0) != WAL_OK) {
            ledger_fail("the store takes nothing");
        }
    }
    workload_crash(rest->workload, NULL, 0);
    sim_disk_on_call(rest->workload->disk, NULL, NULL);
}

/* How many contents are refused that were promised. */
static uint32_t count_refused(const struct ledger *ledger, struct wal_store *store)
{
    uint32_t refused = 0;

    for (uint32_t i = 0; i < ledger->blob_count; i++) {
        struct wal_error error = {.struct_size = sizeof(error)};
        enum wal_status status = ledger_read_blob(ledger, store, i, &error);

        if (status != WAL_OK && status != WAL_ECORRUPT && status != WAL_ENOTFOUND) {
            ledger_fail("blob %u answers %d: %s", i, status, error.text);
        }
        refused += status != WAL_OK && ledger->blobs[i].state == LEDGER_DURABLE;
    }
    return refused;
}

static void look(struct rest *rest, const char *path, uint64_t offset, unsigned bit)
{
    struct workload *copy = workload_clone(rest->workload);
    struct wal_error error = {.struct_size = sizeof(error)};
    uint32_t blobs = copy->ledger->blob_count;
    struct wal_store *store;
    enum wal_status status;
    uint32_t refused;

    ledger_set_context("seed %llu, %s, byte %llu, bit %u", (unsigned long long)copy->options.seed,
                       path, (unsigned long long)offset, bit);
    sim_file_flip_bit(copy->disk, path, offset, bit);
    copy->has_damage = true;
    status = workload_open_raw(copy, 0, 0, &error);
    if (status != WAL_OK) {
        ledger_fail("opening answers %d: %s (%s)", status, error.text, error.file);
    }
    store = copy->actors[0].store;
    refused = count_refused(copy->ledger, store);
    if (refused > 0 && strstr(path, ".idx") != NULL) {
        ledger_fail("an index is damaged, and %u contents are lost", refused);
    }
    copy->ledger->blob_count = 0;
    ledger_check(copy->ledger, store, LEDGER_NO_LOSS, NULL);
    copy->ledger->blob_count = blobs;
    if (workload_probe(copy, 0) != WAL_OK) {
        ledger_fail("the store takes nothing any more");
    }
    if (count_refused(copy->ledger, store) > refused) {
        ledger_fail("more is lost by going on");
    }
    if (workload_close(copy, 0) != WAL_OK || workload_open_raw(copy, 0, 0, &error) != WAL_OK ||
        count_refused(copy->ledger, copy->actors[0].store) > refused) {
        ledger_fail("more is lost by opening again");
    }
    rest->flips++;
    rest->refused += refused;
    workload_destroy(copy);
}

static void run(uint64_t seed, bool closed, uint32_t samples)
{
    struct rest *rest = calloc(1, sizeof(*rest));
    uint64_t state = seed;

    assert_non_null(rest);
    ledger_set_context("seed %llu", (unsigned long long)seed);
    leave(rest, seed, closed);
    for (uint32_t i = 0; i < rest->path_count; i++) {
        uint8_t *bytes;
        size_t size;
        uint64_t used;

        if (!sim_file_exists(rest->workload->disk, rest->paths[i])) {
            continue;
        }
        sim_disk_read_file(rest->workload->disk, rest->paths[i], &bytes, &size);
        used = size;
        while (used > 0 && bytes[used - 1] == 0) {
            used--;
        }
        free(bytes);
        for (uint32_t n = 0; n < samples && used > 0; n++) {
            uint64_t range = n % 8 == 0 ? size : used;

            state = state * 6364136223846793005u + 1442695040888963407u;
            /* The header, now and then: it is small. */
            look(rest, rest->paths[i], (state >> 20) % (n % 16 == 1 ? 4300 % size : range),
                 (unsigned)(state >> 61));
        }
    }
    print_message("%llu flips, %llu contents refused\n", (unsigned long long)rest->flips,
                  (unsigned long long)rest->refused);
    assert_true(rest->flips >= samples && rest->refused > 0);
    workload_destroy(rest->workload);
    free(rest);
}

TEST(loop_flip__blobs_of_a_closed_store)
{
    run(71, true, workload_count(4000, 120));
}

TEST(loop_flip__blobs_of_a_killed_store)
{
    run(72, false, workload_count(4000, 120));
}
