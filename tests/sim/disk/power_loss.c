/*
 * power_loss.c - what a power loss does to a simulated disk: every change is undone, and those that
 * land are done again. Chance is drawn for each change from the seed, its call and its place, so
 * that a clone fares as its original. One thread at a time.
 */
#include <string.h>

#include "tests/sim/disk/internal.h"

enum extent { NONE, WHOLE, SECTORS };

struct loss_plan {
    uint64_t seed;
    enum sim_persistence landing;
    uint64_t cut;  /* the call at which PREFIX ends or SUFFIX begins */
    uint64_t odds; /* of 256, that one of a subset persists */
    bool garbage;
    bool unsafe_overwrite;
};

/* ------------------------------------------------------------- fates --- */

static uint64_t random_below(uint64_t *random, uint64_t count)
{
    return sim__random(random) % count;
}

static uint64_t first_pending(const struct sim_disk *disk)
{
    uint64_t first = disk->sequence;

    for (size_t i = 0; i < disk->change_count; i++) {
        uint64_t sequence = disk->changes[i].sequence;

        first = sequence < first ? sequence : first;
    }
    for (const struct sim_file *file = disk->files; file != NULL; file = file->next) {
        if (file->change_count > 0 && file->changes[0].sequence < first) {
            first = file->changes[0].sequence;
        }
    }
    return first;
}

static struct loss_plan plan_loss(const struct sim_disk *disk, const struct sim_power_loss *loss,
                                  uint64_t seed)
{
    static const uint64_t odds[] = {32, 128, 224};
    uint64_t random = seed;
    uint64_t first = first_pending(disk);
    struct loss_plan loss_plan = {.seed = seed,
                                  .landing = loss->landing,
                                  .garbage = loss->garbage,
                                  .unsafe_overwrite = loss->unsafe_overwrite};

    if (loss_plan.landing == SIM_PERSIST_ANY) {
        loss_plan.landing = (enum sim_persistence)(1 + random_below(&random, SIM_PERSISTENCES - 1));
    }
    loss_plan.cut = first + random_below(&random, disk->sequence - first + 2);
    loss_plan.odds = odds[random_below(&random, 3)];
    return loss_plan;
}

/* Chance for one change: of an inode, 0: of the names, at an offset. */
static uint64_t random_of_change(const struct loss_plan *loss_plan, uint64_t sequence,
                                 uint64_t inode, uint64_t offset)
{
    uint64_t random = loss_plan->seed;

    random = sim__random(&random) ^ sequence;
    random = sim__random(&random) ^ inode;
    random = sim__random(&random) ^ offset;
    return sim__random(&random);
}

static enum extent extent_of_pending(const struct loss_plan *loss_plan, uint64_t sequence,
                                     uint64_t *random)
{
    bool before = sequence < loss_plan->cut;

    switch (loss_plan->landing) {
    case SIM_PERSIST_ALL:
        return WHOLE;
    case SIM_PERSIST_BY_CHANGE:
        return random_below(random, 256) < loss_plan->odds ? WHOLE : NONE;
    case SIM_PERSIST_BY_SECTOR:
        return SECTORS;
    case SIM_PERSIST_PREFIX:
    case SIM_PERSIST_SUFFIX:
        if (sequence == loss_plan->cut) {
            return SECTORS;
        }
        return before == (loss_plan->landing == SIM_PERSIST_PREFIX) ? WHOLE : NONE;
    case SIM_PERSIST_ANY:
    case SIM_PERSIST_NONE:
    case SIM_PERSISTENCES:
        break;
    }
    return NONE;
}

/* For what persists as a whole or not at all. */
static bool persists(const struct loss_plan *loss_plan, enum sim_state state, uint64_t sequence,
                     uint64_t *random)
{
    if (state != SIM_PENDING) {
        return state == SIM_SYNCED;
    }

    enum extent extent = extent_of_pending(loss_plan, sequence, random);

    return extent == WHOLE || (extent == SECTORS && random_below(random, 256) < loss_plan->odds);
}

/* ------------------------------------------------------------- names --- */

static void apply_names(struct sim_disk *disk, const struct loss_plan *loss_plan)
{
    for (size_t i = disk->change_count; i-- > 0;) {
        sim__names_apply(disk, &disk->changes[i], true);
    }
    for (size_t i = 0; i < disk->change_count; i++) {
        const struct sim_name_change *change = &disk->changes[i];
        uint64_t random = random_of_change(loss_plan, change->sequence, 0, 0);

        if (persists(loss_plan, change->state, change->sequence, &random)) {
            sim__names_apply(disk, change, false);
        }
    }
    sim__names_prune(disk);
    sim__names_drop_oldest(disk, disk->change_count);
}

/* ------------------------------------------------------------- files --- */

static void undo(struct sim_file *file, const struct sim_change *change)
{
    const struct sim_bytes *before = change->before;

    if (change->kind == SIM_MODE) {
        file->mode = change->old_mode;
        return;
    }
    sim__file_store(file, change->offset, before == NULL ? NULL : before->data, change->size);
    file->size = change->old_size;
    file->allocated = change->old_allocated;
}

static void store_part(struct sim_file *file, const struct sim_change *change, uint64_t offset,
                       uint64_t size)
{
    const uint8_t *data = NULL;

    if (change->after != NULL) {
        data = change->after->data + (offset - change->offset);
    }
    sim__file_store(file, offset, data, size);
}

static void write_garbage(const struct loss_plan *loss_plan, struct sim_file *file, uint64_t offset,
                          uint64_t size, uint64_t *random)
{
    uint8_t garbage[SIM_SECTOR_SIZE];

    if (loss_plan->unsafe_overwrite) {
        offset -= offset % SIM_SECTOR_SIZE;
        size = SIM_SECTOR_SIZE;
    }
    sim__random_fill(random, garbage, sizeof(garbage));
    sim__file_store(file, offset, garbage, size);
}

/* Decides the sectors of a write one by one. */
static void redo_sectors(const struct loss_plan *loss_plan, struct sim_file *file,
                         const struct sim_change *change, enum extent extent, uint64_t *random)
{
    bool garbage = loss_plan->garbage && change->state == SIM_PENDING;
    uint64_t end = change->offset + change->size;
    uint64_t next;

    for (uint64_t at = change->offset; at < end; at = next) {
        next = at - at % SIM_SECTOR_SIZE + SIM_SECTOR_SIZE;
        next = next < end ? next : end;
        if (extent == SECTORS && random_below(random, 256) < loss_plan->odds) {
            store_part(file, change, at, next - at);
        } else if (garbage && random_below(random, 4) == 0) {
            write_garbage(loss_plan, file, at, next - at, random);
        }
    }
}

static void redo_write(const struct loss_plan *loss_plan, struct sim_file *file,
                       const struct sim_change *change)
{
    uint64_t random = random_of_change(loss_plan, change->sequence, file->inode, change->offset);
    enum extent extent = NONE;

    switch (change->state) {
    case SIM_PENDING:
        extent = extent_of_pending(loss_plan, change->sequence, &random);
        break;
    case SIM_SYNCED:
        extent = WHOLE;
        break;
    case SIM_LOST:
        extent = change->partial ? SECTORS : NONE;
        break;
    }
    if (extent == WHOLE) {
        store_part(file, change, change->offset, change->size);
    } else if (extent == SECTORS || loss_plan->garbage) {
        redo_sectors(loss_plan, file, change, extent, &random);
    }
}

/* False: a cut of the file does not land, so nothing after it does: that went to blocks which the
 * old file has not. */
static bool redo(const struct loss_plan *loss_plan, struct sim_file *file,
                 const struct sim_change *change)
{
    uint64_t random = random_of_change(loss_plan, change->sequence, file->inode, SIM_FILE_MAX);

    if (change->kind == SIM_WRITE) {
        redo_write(loss_plan, file, change);
        return true;
    }
    if (!persists(loss_plan, change->state, change->sequence, &random)) {
        return change->kind != SIM_TRUNCATE;
    }
    if (change->kind == SIM_MODE) {
        file->mode = change->new_mode;
        return true;
    }
    if (change->kind == SIM_TRUNCATE) {
        sim__file_store(file, 0, NULL, file->pages * SIM_PAGE_SIZE);
    }
    file->size = change->new_size;
    file->allocated = change->new_allocated;
    return true;
}

/* Bytes that landed past the end are not part of the file. */
static void zero_past_end(struct sim_file *file)
{
    uint64_t end = file->pages * SIM_PAGE_SIZE;

    if (file->size < end) {
        sim__file_store(file, file->size, NULL, end - file->size);
    }
}

/* Times stay new though bytes are lost, or are old again. */
static void apply_times(struct sim_file *file, const struct loss_plan *loss_plan)
{
    uint64_t random = random_of_change(loss_plan, 0, file->inode, 0);
    bool stay = random_below(&random, 2) == 0;

    if (loss_plan->landing == SIM_PERSIST_NONE ||
        (loss_plan->landing != SIM_PERSIST_ALL && !stay)) {
        file->mtime_ns = file->durable_mtime_ns;
        file->ctime_ns = file->durable_ctime_ns;
    }
    file->durable_mtime_ns = file->mtime_ns;
    file->durable_ctime_ns = file->ctime_ns;
}

static void apply_changes(struct sim_file *file, const struct loss_plan *loss_plan)
{
    bool more = true;

    for (size_t i = file->change_count; i-- > 0;) {
        undo(file, &file->changes[i]);
    }
    for (size_t i = 0; more && i < file->change_count; i++) {
        more = redo(loss_plan, file, &file->changes[i]);
    }
    zero_past_end(file);
    apply_times(file, loss_plan);
    sim__file_drop_oldest(file, file->change_count);
    file->shadow_size = 0;
}

/* -------------------------------------------------------------- boot --- */

static void boot(struct sim_disk *disk, uint64_t seed)
{
    uint64_t random = seed ^ disk->random;

    sim__random_fill(&random, disk->boot_id, sizeof(disk->boot_id));
    disk->random = random;
    disk->boot_ms += (int64_t)(disk->monotonic_ns / 1000000) + 1000;
    disk->monotonic_ns = 1000000000;
}

void sim_disk_power_loss(struct sim_disk *disk, const struct sim_power_loss *loss, uint64_t seed)
{
    for (struct sim_file *file = disk->files; file != NULL; file = file->next) {
        sim__file_collect_map_writes(file);
    }

    struct loss_plan loss_plan = plan_loss(disk, loss, seed);

    for (struct sim_process *process = disk->processes; process != NULL; process = process->next) {
        sim_process_kill(process);
    }
    apply_names(disk, &loss_plan);
    for (struct sim_file *file = disk->files; file != NULL; file = file->next) {
        apply_changes(file, &loss_plan);
    }
    boot(disk, seed);
}
