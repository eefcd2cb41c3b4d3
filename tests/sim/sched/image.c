/*
 * image.c - disks to begin with: made once, then copied for every
 * schedule, each with the ledger of what is on it (sched.h). Stores with a
 * short tail that is nearly full rotate soon.
 */
#include "tests/sim/sched/internal.h"

#include <errno.h>
#include <string.h>

#include "engine/log/segment.h"
#include "engine/session/session.h"
#include "format/bytes/assert.h"

enum image {
    IMAGE_NONE,         /* no store yet */
    IMAGE_FRESH,        /* two sessions, closed */
    IMAGE_FULL,         /* a short tail, nearly full, closed */
    IMAGE_KILLED,       /* the same, and its process was killed */
    IMAGE_PREALLOCATED, /* the same, with a preallocated segment */
    IMAGE_TORN,         /* killed in the middle of a write */
    IMAGE_SEALED,       /* rotated, then killed */
    IMAGE_FAILED,       /* a sync failed, and all are gone */
    IMAGES
};

enum {
    SHORT_CAPACITY = 128 * 1024
};

static struct {
    struct sim_disk *disk;
    struct ledger ledger;
    struct sched_op ops[SCHED_OPS];
    bool may_poison;
} images[IMAGES];

static struct sched maker;

/* ------------------------------------------------------------ making --- */

static void make_open(void)
{
    bool opened = sched__open(&maker.processes[0]);

    WAL__ASSERT(opened && !maker.failed);
}

static void make_close(void)
{
    bool closed = sched__close(&maker.processes[0]);

    WAL__ASSERT(closed && !maker.failed);
}

static void make_kill(void)
{
    sched__remove_process(&maker.processes[0]);
    sched__start(&maker.processes[0]);
}

/* The first segment, not yet begun, is replaced by a short one. */
static void shrink_segment(void)
{
    struct sched_process *process = &maker.processes[0];
    struct wal__segment_header header = {.version = WAL__FORMAT_VERSION,
                                         .id = 1,
                                         .capacity = SHORT_CAPACITY,
                                         .class = WAL__CLASS_LOG,
                                         .salt = 12345};
    struct wal__env env = {.heap = &process->arena.heap, .io = &process->io};
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status;
    int err = 0;

    make_open();
    memcpy(header.uuid, process->store->core.manifest.uuid,
           sizeof(header.uuid));
    header.group_align = process->store->core.manifest.group_align;
    make_close();
    memcpy(env.root, SCHED_ROOT, sizeof(SCHED_ROOT));
    status = env.io->unlink(env.io->ctx, SCHED_ROOT "/log/0000000000000001.seg",
                            &err);
    WAL__ASSERT(status == WAL_OK);
    status = wal__segment_preallocate(&env, "log", NULL, &header,
                                      SHORT_CAPACITY, NULL, &error);
    WAL__ASSERT(status == WAL_OK);
    make_open();
}

static void make_sessions(uint32_t size, uint32_t count)
{
    struct sched_process *process = &maker.processes[0];

    for (uint32_t i = 0; i < SCHED_SHARED_SESSIONS; i++) {
        sched__create(process, i);
    }
    for (uint32_t i = 0; i < count; i++) {
        sched__append(process, i % SCHED_SHARED_SESSIONS, WAL_DURABLE, size);
    }
    WAL__ASSERT(!maker.failed);
}

/* One more batch, whose write, or the sync of it, fails; nor can it be
 * healed. */
static void make_failure(enum sim_call call)
{
    struct sched_process *process = &maker.processes[0];
    struct sim_fault fault = {
        .call = call, .path = ".seg", .sys_errno = EIO, .put = 200};
    struct sim_fault unhealed = {
        .call = SIM_OPEN, .path = ".seg.new", .sticky = true, .sys_errno = EIO};

    sched__append(process, 0, WAL_WRITTEN, 300);
    process->failed = true;
    maker.may_poison = true;
    sim_process_add_fault(process->process, &fault);
    sim_process_add_fault(process->process, &unhealed);
    sched__append(process, 1, WAL_DURABLE, 500);
    WAL__ASSERT(!maker.failed && process->poisoned);
    make_kill();
}

static void make_content(enum image image)
{
    struct sched_process *process = &maker.processes[0];

    if (image == IMAGE_NONE) {
        return;
    }
    if (image == IMAGE_FRESH) {
        make_open();
        make_sessions(200, 4);
        make_close();
        return;
    }
    shrink_segment();
    make_sessions(9000, image == IMAGE_SEALED ? 11 : 8);
    switch (image) {
    case IMAGE_FULL:
        make_close();
        return;
    case IMAGE_PREALLOCATED: {
        struct wal__prealloc_job job = {2, SHORT_CAPACITY};
        enum wal_status status =
            wal__prealloc_create(&process->store->core.log, &job, 0, NULL);

        WAL__ASSERT(status == WAL_OK);
        make_close();
        return;
    }
    case IMAGE_TORN:
        make_failure(SIM_PWRITEV);
        return;
    case IMAGE_FAILED:
        make_failure(SIM_SYNC);
        return;
    case IMAGE_NONE:
    case IMAGE_FRESH:
    case IMAGE_KILLED:
    case IMAGE_SEALED:
    case IMAGES:
        break;
    }
    make_kill();
}

static void make_image(enum image image)
{
    static struct sched_counts counts;

    memset(&maker, 0, sizeof(maker));
    maker.counts = &counts;
    maker.options.processes = 1;
    maker.options.seed = image;
    maker.disk = sim_disk_create(image + 1u);
    maker.watch = sim_process_create(maker.disk);
    maker.processes[0].sched = &maker;
    maker.processes[0].again = SCHED_NONE;
    maker.ledger.counts = true;
    for (uint32_t i = 0; i < SCHED_SHARED_SESSIONS; i++) {
        (void)ledger_add_session(&maker.ledger, 0, SCHED_NONE, SCHED_NONE);
    }
    sched__start(&maker.processes[0]);
    make_content(image);
    sched__remove_process(&maker.processes[0]);
    for (uint32_t i = 0; i < maker.ledger.batch_count; i++) {
        struct ledger_batch *batch = &maker.ledger.batches[i];

        maker.ops[i].handle = 0;
        batch->begin = 0;
        batch->end = 0;
        batch->known_since = batch->state >= LEDGER_WRITTEN ? 0 : UINT64_MAX;
        batch->durable_since = batch->state == LEDGER_DURABLE ? 0 : UINT64_MAX;
    }
    images[image].disk = maker.disk;
    ledger_copy(&images[image].ledger, &maker.ledger);
    memcpy(images[image].ops, maker.ops, sizeof(maker.ops));
    images[image].may_poison = maker.may_poison;
}

/* ------------------------------------------------------------- using --- */

void sched__load_image(struct sched *sched, uint64_t which)
{
    enum image image = (enum image)(which % IMAGES);

    if (images[image].disk == NULL) {
        make_image(image);
    }
    sched->disk = sim_disk_clone(images[image].disk);
    ledger_copy(&sched->ledger, &images[image].ledger);
    memcpy(sched->ops, images[image].ops, sizeof(sched->ops));
    sched->may_poison = images[image].may_poison;
}

void sched__images_free(void)
{
    for (uint32_t i = 0; i < IMAGES; i++) {
        sim_disk_destroy(images[i].disk);
        images[i].disk = NULL;
    }
}
