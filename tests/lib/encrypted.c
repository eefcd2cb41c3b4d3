/*
 * encrypted.c - runs tests on encrypted stores: with AGENTWAL_TEST_KEY in the environment every
 * store that a test makes without a key is an encrypted one, and is opened by that key. No nonce
 * may be used twice with the salt of a segment, by any process of the test.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/store/core.h"
#include "tests/lib/test.h"
#include "tests/sim/disk/sim.h"
#include "tests/sim/sched/sched.h"

enum { PLACES = 1 << 20, KEPT = PLACES / 4 * 3 };

/* The nonces of the present world: begun anew with another one, and when it is nearly full. */
static struct {
    pthread_mutex_t mutex;
    uint64_t world;
    uint64_t generation;
    uint64_t count;
    struct {
        uint64_t generation; /* another one: free */
        uint64_t salt;
        uint8_t nonce[WAL__NONCE_SIZE];
    } places[PLACES];
} used = {.mutex = PTHREAD_MUTEX_INITIALIZER, .generation = 1};

static void note_nonce(void *ctx, uint64_t salt, const uint8_t nonce[WAL__NONCE_SIZE])
{
    const uint64_t world = sim_world(sched_io_base(ctx));
    uint64_t place;

    memcpy(&place, nonce, sizeof(place));
    place ^= salt;
    pthread_mutex_lock(&used.mutex);
    if (used.count == KEPT || used.world != world) {
        used.generation++;
        used.count = 0;
        used.world = world;
    }
    for (place %= PLACES; used.places[place].generation == used.generation;
         place = (place + 1) % PLACES) {
        if (used.places[place].salt == salt &&
            memcmp(used.places[place].nonce, nonce, WAL__NONCE_SIZE) == 0) {
            print_error("a nonce is used twice\n");
            abort();
        }
    }
    used.places[place].generation = used.generation;
    used.places[place].salt = salt;
    memcpy(used.places[place].nonce, nonce, WAL__NONCE_SIZE);
    used.count++;
    pthread_mutex_unlock(&used.mutex);
}

enum wal_status __real_wal__core_init(struct wal__core *core, const char *path,
                                      const struct wal__core_options *options,
                                      struct wal_error *error);
enum wal_status __wrap_wal__core_init(struct wal__core *core, const char *path,
                                      const struct wal__core_options *options,
                                      struct wal_error *error);

enum wal_status __wrap_wal__core_init(struct wal__core *core, const char *path,
                                      const struct wal__core_options *options,
                                      struct wal_error *error)
{
    const char *text = getenv("AGENTWAL_TEST_KEY");
    struct wal__core_options changed = *options;
    struct wal_key key = {.struct_size = sizeof(key), .kind = WAL_KEY_SECRET};
    enum wal_status status;

    if (text != NULL && options->open.key == NULL && !options->io->in_memory) {
        key.bytes = (struct wal_slice){text, strlen(text)};
        changed.open.key = &key;
        changed.open.flags |= WAL_OPEN_KEY_IF_NEEDED;
    }
    status = __real_wal__core_init(core, path, &changed, error);
    if (core->env.keyring != NULL) {
        core->env.keyring->on_nonce = note_nonce;
        core->env.keyring->on_nonce_ctx = (void *)(uintptr_t)options->io;
    }
    return status;
}
