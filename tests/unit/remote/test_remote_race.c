/*
 * test_remote_race.c - writers that race for a store, by a seed: each call of a
 * machine may be interrupted by all that another one does, PUTs fail before and
 * after they are done, come later, in any order, and are repeated, and machines
 * are killed. AGENTWAL_SEED repeats a run; AGENTWAL_LONG makes ten times as
 * many takeovers.
 *
 * What must hold: an epoch has one winner; each entry that was acknowledged is
 * at its number in the end, and no number was acknowledged with two entries;
 * nothing else is there, but what no one answered; a follower sees nothing that
 * it must take for damage.
 */
#include "remote/base/base.h"
#include "remote/history/remote.h"
#include "tests/lib/remote/small_log.h"
#include "tests/lib/test.h"

enum {
    MACHINES = 3,
    DEPTH = 2 /* machines that interrupt each other */
};

struct machine {
    struct small_log log;
    struct wal_remote_writer writer;
    uint64_t shipped; /* entries up to the last end of a part that it knows */
    uint64_t id;      /* of the writer */
    bool is_writer;
    bool was_killed; /* and goes on as the same writer */
    bool is_active;  /* in a step that another machine interrupts */
};

static struct race {
    struct memory_driver memory;
    struct machine machines[MACHINES];
    struct small_log follower;
    uint64_t random;
    int depth;
    uint64_t next_entry;
    uint64_t next_writer;
    uint64_t takeovers;
    uint64_t fenced;
    uint64_t killed;
    uint64_t bases;
    uint64_t collected;     /* parts */
    uint64_t *acknowledged; /* the entry of each number, from 1 */
    uint64_t acknowledged_count;
    uint64_t *winners; /* of each epoch */
} race;

static uint64_t below(uint64_t limit)
{
    return rng_below(&race.random, limit);
}

static void stop(struct machine *machine)
{
    wal__writer_deinit(&machine->writer);
    machine->writer = (struct wal_remote_writer){.epoch = 0};
    machine->is_writer = false;
}

/* Pulls until the remote answers. */
static enum wal_status pull(struct small_log *log)
{
    struct wal_error error = KIT_ERROR;
    enum wal_status status;

    do {
        status = small_pull(&race.memory, log, NULL, &error);
    } while (status == WAL_EREMOTE);
    if (status == WAL_ECORRUPT) {
        print_error("%s: %s\n", error.file, error.text);
    }
    return status;
}

/* Brings a log up to date, anew when it is older than a base. */
static void update(struct small_log *log)
{
    enum wal_status status = pull(log);

    if (status == WAL_ECONFLICT) {
        small_log_cut(log, 0);
        status = pull(log);
    }
    assert_true(status == WAL_OK || status == WAL_ENOTFOUND);
}

/* What the machine has is replaced by what the remote has; of what it has of
 * that, mostly it keeps something. */
static void make_anew(struct machine *machine)
{
    struct small_log *log = &machine->log;
    uint64_t count = 0;

    while (count < machine->shipped &&
           log->entries[count] == race.acknowledged[count]) {
        count++;
    }
    small_log_cut(log, count == machine->shipped && below(32) != 0 ? count : 0);
    log->compacted = 0;
    log->mark_count = 0;
    update(log);
    machine->shipped = log->count;
    log->per_part = below(4);
}

static void start(struct machine *machine)
{
    const bool goes_on = machine->was_killed;
    enum wal_status status;

    machine->was_killed = false;
    if (!goes_on) {
        make_anew(machine);
        machine->id = ++race.next_writer;
    }
    status = small_writer_start(&machine->writer, &race.memory, &machine->log,
                                machine->id, !goes_on, NULL);
    if (status != WAL_OK) {
        /* What it looks at may be collected, at once and not after a day. */
        assert_true(status == WAL_EREMOTE || status == WAL_EFENCED ||
                    (status == WAL_ECONFLICT && !goes_on) ||
                    (status == WAL_ECORRUPT && race.collected > 0));
        stop(machine);
        return;
    }
    /* A process that was killed with parts on the way makes an epoch too. */
    if (!goes_on || race.winners[machine->writer.epoch] == 0) {
        assert_int_equal(race.winners[machine->writer.epoch], 0);
        race.winners[machine->writer.epoch] = machine->id;
        race.takeovers++;
    }
    assert_int_equal(race.winners[machine->writer.epoch], machine->id);
    machine->is_writer = true;
}

/* The first `count` entries of the log are in the remote. */
static void acknowledge(const struct small_log *log, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (race.acknowledged[i] == 0) {
            race.acknowledged[i] = log->entries[i];
        }
        assert_int_equal(race.acknowledged[i], log->entries[i]);
    }
    if (count > race.acknowledged_count) {
        race.acknowledged_count = count;
    }
}

/* Makes a base, and removes what is below the newest one, as any process may at
 * any time. */
static void make_base(struct machine *machine)
{
    const struct wal_remote_writer *writer = &machine->writer;
    const struct wal__part_source source = small_log_source(&machine->log);
    const struct wal__base_end end = {.epoch = writer->last.epoch,
                                      .part = writer->last.part,
                                      .position = writer->position};
    struct wal__collect_result collected = {.parts = 0};
    struct wal__base_result made;
    enum wal_status status = wal__base_make(
        &race.memory.remote, &source, small_uuid, &end, false, &made, NULL);

    if (status == WAL_OK && below(2) == 0) {
        status = wal__collect(&race.memory.remote, small_uuid,
                              wal__machine_unix_ms(), 0, &collected, NULL);
    }
    assert_true(status == WAL_OK || status == WAL_EREMOTE ||
                status == WAL_ECORRUPT);
    race.bases += made.number > 0;
    race.collected += collected.parts;
}

static void push(struct machine *machine)
{
    struct wal_remote_push_result result = WAL_INIT(wal_remote_push_result);
    uint64_t count;
    enum wal_status status;

    for (uint64_t i = below(8); i > 0; i--) {
        small_log_append(&machine->log, ++race.next_entry);
    }
    count = machine->log.count;
    if (below(32) == 0) {
        machine->log.compacted = below(count + 1);
        machine->log.identity = ++race.next_entry;
    }
    memory_now_ms += below(16) == 0 ? 40000 : below(1000);
    status = wal__writer_push(&machine->writer, &result, NULL);
    if (status == WAL_OK) {
        acknowledge(&machine->log, count);
        machine->shipped = count;
        if (below(8) == 0) {
            make_base(machine);
        }
    } else if (status == WAL_EFENCED) {
        race.fenced++;
        stop(machine);
    } else {
        assert_int_equal(status, WAL_EREMOTE);
        if (below(4) == 0) {
            race.killed++;
            stop(machine);
            machine->was_killed = true;
        }
    }
}

static void step(struct machine *machine)
{
    machine->is_active = true;
    race.depth++;
    if (!machine->is_writer) {
        start(machine);
    } else {
        push(machine);
    }
    race.depth--;
    machine->is_active = false;
}

/* Another machine goes on in the middle of a call. */
static void interrupt(void *ctx, const char *call, const char *name)
{
    struct machine *machine = &race.machines[below(MACHINES)];
    uint64_t rest = strcmp(call, "create") == 0 ? 4 : 200;

    (void)ctx;
    (void)name;
    if (race.depth > 0 && race.depth < DEPTH && !machine->is_active &&
        below(rest) == 0) {
        step(machine);
    }
}

static void set_up_race(uint64_t seed)
{
    race = (struct race){.random = seed};
    memory_driver_init(&race.memory);
    race.memory.random = seed + 1;
    race.memory.put_faults = 150;
    race.memory.other_faults = 100;
    race.memory.hook = interrupt;
    small_log_init(&race.follower);
    for (size_t i = 0; i < MACHINES; i++) {
        small_log_init(&race.machines[i].log);
    }
    race.acknowledged = calloc(SMALL_LOG_MAX, sizeof(uint64_t));
    race.winners = calloc(MEMORY_OBJECTS, sizeof(uint64_t));
    assert_true(race.acknowledged != NULL && race.winners != NULL);
}

static void tear_down_race(void)
{
    for (size_t i = 0; i < MACHINES; i++) {
        stop(&race.machines[i]);
        small_log_deinit(&race.machines[i].log);
    }
    small_log_deinit(&race.follower);
    memory_driver_deinit(&race.memory);
    free(race.acknowledged);
    free(race.winners);
}

/* The follower sees what is acknowledged. */
static void follow(void)
{
    uint64_t count = race.acknowledged_count;

    update(&race.follower);
    assert_true(race.follower.count >= count);
    for (uint64_t i = 0; i < count; i++) {
        assert_int_equal(race.follower.entries[i], race.acknowledged[i]);
    }
}

/* All that is late comes, and a last writer stores a last entry. */
static void finish(void)
{
    struct machine *machine = &race.machines[0];
    struct small_log pulled;

    race.memory.hook = NULL;
    race.memory.put_faults = 0;
    race.memory.other_faults = 0;
    memory_driver_settle(&race.memory);
    stop(machine);
    machine->was_killed = false;
    start(machine);
    assert_true(machine->is_writer);
    small_log_append(&machine->log, ++race.next_entry);
    push(machine);
    follow();
    small_log_init(&pulled);
    assert_ok(pull(&pulled));
    assert_logs_equal(&pulled, &race.follower);
    assert_int_equal(pulled.count, race.acknowledged_count);
    small_log_deinit(&pulled);
}

static void run(uint64_t seed, uint64_t takeovers)
{
    set_up_race(seed);
    for (uint64_t i = 0; race.takeovers < takeovers; i++) {
        step(&race.machines[below(MACHINES)]);
        if (below(16) == 0) {
            follow();
        }
        if (race.memory.count > MEMORY_OBJECTS / 2) {
            break;
        }
    }
    finish();
    print_message(
        "%llu takeovers, %llu writers fenced, %llu killed, %llu "
        "entries acknowledged, %llu bases, %llu parts collected, %zu objects\n",
        (unsigned long long)race.takeovers, (unsigned long long)race.fenced,
        (unsigned long long)race.killed,
        (unsigned long long)race.acknowledged_count,
        (unsigned long long)race.bases, (unsigned long long)race.collected,
        race.memory.count);
    tear_down_race();
}

TEST(remote_race__takeovers)
{
    uint64_t seed = rng_seed(22);
    uint64_t runs = getenv("AGENTWAL_LONG") != NULL ? 100 : 10;

    for (uint64_t i = 0; i < runs; i++) {
        run(seed + i, 100);
    }
}

/* In one store, whose history grows. */
TEST(remote_race__takeovers_of_one_store)
{
    uint64_t seed = rng_seed(1000);

    run(seed, 1000);
}
