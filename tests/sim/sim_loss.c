/*
 * sim_loss.c - what a power loss does to a simulated disk: every change is
 * undone, and those that land are done again. Chance is drawn for each change
 * from the seed, its call and its place, so that a clone fares as its
 * original. One thread at a time.
 */
#include <string.h>

#include "tests/sim/sim_internal.h"

enum extent {
    NONE,
    WHOLE,
    SECTORS
};

struct fate {
    uint64_t seed;
    enum sim_landing landing;
    uint64_t cut;  /* the call at which PREFIX ends or SUFFIX begins */
    uint64_t odds; /* of 256, that one of a subset lands */
    bool garbage;
    bool unsafe_overwrite;
};

/* ------------------------------------------------------------- fates --- */

static uint64_t draw(uint64_t *random, uint64_t count)
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
    for (const struct sim_file *file = disk->files; file != NULL;
         file = file->next) {
        if (file->change_count > 0 && file->changes[0].sequence < first) {
            first = file->changes[0].sequence;
        }
    }
    return first;
}

static struct fate fate_of(const struct sim_disk *disk,
                           const struct sim_power_loss *loss, uint64_t seed)
{
    static const uint64_t odds[] = {32, 128, 224};
    uint64_t random = seed;
    uint64_t first = first_pending(disk);
    struct fate fate = {.seed = seed,
                        .landing = loss->landing,
                        .garbage = loss->garbage,
                        .unsafe_overwrite = loss->unsafe_overwrite};

    if (fate.landing == SIM_LAND_ANY) {
        fate.landing = (enum sim_landing)(1 + draw(&random, SIM_LANDINGS - 1));
    }
    fate.cut = first + draw(&random, disk->sequence - first + 2);
    fate.odds = odds[draw(&random, 3)];
    return fate;
}

/* Chance for one change: of an inode, 0: of the names, at an offset. */
static uint64_t random_for(const struct fate *fate, uint64_t sequence,
                           uint64_t inode, uint64_t offset)
{
    uint64_t random = fate->seed;

    random = sim__random(&random) ^ sequence;
    random = sim__random(&random) ^ inode;
    random = sim__random(&random) ^ offset;
    return sim__random(&random);
}

static enum extent extent_of_pending(const struct fate *fate, uint64_t sequence,
                                     uint64_t *random)
{
    bool before = sequence < fate->cut;

    switch (fate->landing) {
    case SIM_LAND_ALL:
        return WHOLE;
    case SIM_LAND_BY_CHANGE:
        return draw(random, 256) < fate->odds ? WHOLE : NONE;
    case SIM_LAND_BY_SECTOR:
        return SECTORS;
    case SIM_LAND_PREFIX:
    case SIM_LAND_SUFFIX:
        if (sequence == fate->cut) {
            return SECTORS;
        }
        return before == (fate->landing == SIM_LAND_PREFIX) ? WHOLE : NONE;
    case SIM_LAND_ANY:
    case SIM_LAND_NONE:
    case SIM_LANDINGS:
        break;
    }
    return NONE;
}

/* For what lands as a whole or not at all. */
static bool lands(const struct fate *fate, enum sim_state state,
                  uint64_t sequence, uint64_t *random)
{
    if (state != SIM_PENDING) {
        return state == SIM_SYNCED;
    }

    enum extent extent = extent_of_pending(fate, sequence, random);

    return extent == WHOLE ||
           (extent == SECTORS && draw(random, 256) < fate->odds);
}

/* ------------------------------------------------------------- names --- */

static void lose_names(struct sim_disk *disk, const struct fate *fate)
{
    for (size_t i = disk->change_count; i-- > 0;) {
        sim__names_apply(disk, &disk->changes[i], true);
    }
    for (size_t i = 0; i < disk->change_count; i++) {
        const struct sim_name_change *change = &disk->changes[i];
        uint64_t random = random_for(fate, change->sequence, 0, 0);

        if (lands(fate, change->state, change->sequence, &random)) {
            sim__names_apply(disk, change, false);
        }
    }
    sim__names_prune(disk);
    sim__names_forget(disk, disk->change_count);
}

/* ------------------------------------------------------------- files --- */

static void undo(struct sim_file *file, const struct sim_change *change)
{
    const struct sim_bytes *before = change->before;

    if (change->kind == SIM_MODE) {
        file->mode = change->old_mode;
        return;
    }
    sim__file_store(file, change->offset, before == NULL ? NULL : before->data,
                    change->size);
    file->size = change->old_size;
    file->allocated = change->old_allocated;
}

static void store_part(struct sim_file *file, const struct sim_change *change,
                       uint64_t offset, uint64_t size)
{
    const uint8_t *data = NULL;

    if (change->after != NULL) {
        data = change->after->data + (offset - change->offset);
    }
    sim__file_store(file, offset, data, size);
}

static void spoil(const struct fate *fate, struct sim_file *file,
                  uint64_t offset, uint64_t size, uint64_t *random)
{
    uint8_t garbage[SIM_SECTOR_SIZE];

    if (fate->unsafe_overwrite) {
        offset -= offset % SIM_SECTOR_SIZE;
        size = SIM_SECTOR_SIZE;
    }
    sim__random_fill(random, garbage, sizeof(garbage));
    sim__file_store(file, offset, garbage, size);
}

/* Decides the sectors of a write one by one. */
static void redo_sectors(const struct fate *fate, struct sim_file *file,
                         const struct sim_change *change, enum extent extent,
                         uint64_t *random)
{
    bool garbage = fate->garbage && change->state == SIM_PENDING;
    uint64_t end = change->offset + change->size;
    uint64_t next;

    for (uint64_t at = change->offset; at < end; at = next) {
        next = at - at % SIM_SECTOR_SIZE + SIM_SECTOR_SIZE;
        next = next < end ? next : end;
        if (extent == SECTORS && draw(random, 256) < fate->odds) {
            store_part(file, change, at, next - at);
        } else if (garbage && draw(random, 4) == 0) {
            spoil(fate, file, at, next - at, random);
        }
    }
}

static void redo_write(const struct fate *fate, struct sim_file *file,
                       const struct sim_change *change)
{
    uint64_t random =
        random_for(fate, change->sequence, file->inode, change->offset);
    enum extent extent = NONE;

    switch (change->state) {
    case SIM_PENDING:
        extent = extent_of_pending(fate, change->sequence, &random);
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
    } else if (extent == SECTORS || fate->garbage) {
        redo_sectors(fate, file, change, extent, &random);
    }
}

/* False: a cut of the file does not land, so nothing after it does: that went
 * to blocks which the old file has not. */
static bool redo(const struct fate *fate, struct sim_file *file,
                 const struct sim_change *change)
{
    uint64_t random =
        random_for(fate, change->sequence, file->inode, SIM_FILE_MAX);

    if (change->kind == SIM_WRITE) {
        redo_write(fate, file, change);
        return true;
    }
    if (!lands(fate, change->state, change->sequence, &random)) {
        return change->kind != SIM_CUT;
    }
    if (change->kind == SIM_MODE) {
        file->mode = change->new_mode;
        return true;
    }
    if (change->kind == SIM_CUT) {
        sim__file_store(file, 0, NULL, file->pages * SIM_PAGE_SIZE);
    }
    file->size = change->new_size;
    file->allocated = change->new_allocated;
    return true;
}

/* What landed past the end is not part of the file. */
static void trim(struct sim_file *file)
{
    uint64_t end = file->pages * SIM_PAGE_SIZE;

    if (file->size < end) {
        sim__file_store(file, file->size, NULL, end - file->size);
    }
}

/* Times stay new though bytes are lost, or are old again. */
static void lose_times(struct sim_file *file, const struct fate *fate)
{
    uint64_t random = random_for(fate, 0, file->inode, 0);
    bool stay = draw(&random, 2) == 0;

    if (fate->landing == SIM_LAND_NONE ||
        (fate->landing != SIM_LAND_ALL && !stay)) {
        file->mtime_ns = file->kept_mtime_ns;
        file->ctime_ns = file->kept_ctime_ns;
    }
    file->kept_mtime_ns = file->mtime_ns;
    file->kept_ctime_ns = file->ctime_ns;
}

static void lose_changes(struct sim_file *file, const struct fate *fate)
{
    bool more = true;

    for (size_t i = file->change_count; i-- > 0;) {
        undo(file, &file->changes[i]);
    }
    for (size_t i = 0; more && i < file->change_count; i++) {
        more = redo(fate, file, &file->changes[i]);
    }
    trim(file);
    lose_times(file, fate);
    sim__file_forget(file, file->change_count);
    file->shadow_size = 0;
}

/* -------------------------------------------------------------- boot --- */

static void boot(struct sim_disk *disk, uint64_t seed)
{
    uint64_t random = seed ^ disk->random;

    sim__random_fill(&random, disk->boot_id, sizeof(disk->boot_id));
    disk->random = random;
    disk->boot_ms += (int64_t)(disk->ticks_ns / 1000000) + 1000;
    disk->ticks_ns = 1000000000;
}

void sim_disk_power_loss(struct sim_disk *disk,
                         const struct sim_power_loss *loss, uint64_t seed)
{
    for (struct sim_file *file = disk->files; file != NULL; file = file->next) {
        sim__file_capture(file);
    }

    struct fate fate = fate_of(disk, loss, seed);

    for (struct sim_process *process = disk->processes; process != NULL;
         process = process->next) {
        sim_process_kill(process);
    }
    lose_names(disk, &fate);
    for (struct sim_file *file = disk->files; file != NULL; file = file->next) {
        lose_changes(file, &fate);
    }
    boot(disk, seed);
}
