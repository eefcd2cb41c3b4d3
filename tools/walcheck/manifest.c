/*
 * manifest.c - reads MANIFEST and its two slots (SPEC.md 2.1).
 *
 * Invariant: a lost slot is damage as long as the other slot or a segment
 * identifies the store; a directory with neither MANIFEST nor log/ is refused.
 *
 * Threads: the main thread.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/walcheck/walcheck.h"

static const char name[] = "MANIFEST";

char *check_path(const struct check_store *store, const char *file)
{
    size_t size = strlen(store->path) + strlen(file) + 2;
    char *path = cli_alloc(size);

    snprintf(path, size, "%s/%s", store->path, file);
    return path;
}

static bool has_log(const struct check_store *store)
{
    char *path = check_path(store, "log");
    struct stat status;
    bool exists = stat(path, &status) == 0 && S_ISDIR(status.st_mode);

    free(path);
    return exists;
}

/* Whether a slot's bytes from `from` on are zero. */
static bool is_zero_from(const uint8_t *slot, size_t from)
{
    for (size_t i = from; i < WAL__MANIFEST_SLOT_SIZE; i++) {
        if (slot[i] != 0) {
            return false;
        }
    }
    return true;
}

enum {
    SLOT_USED = 64
};

struct slot {
    enum wal__fmt fmt;
    bool zero;
    struct wal__manifest manifest;
};

static void check_slot(struct check_store *store, const uint8_t *bytes,
                       unsigned number, const struct slot *slot,
                       const struct slot *other)
{
    uint64_t offset = (uint64_t)number * WAL__MANIFEST_SLOT_SIZE;

    if (slot->fmt == WAL__FMT_OK) {
        if (!is_zero_from(bytes, SLOT_USED)) {
            check_damage_add_redundant(
                &store->damages, name, offset + SLOT_USED,
                WAL__MANIFEST_SLOT_SIZE - SLOT_USED,
                "the padding of the slot is not zero; nothing reads it");
        }
        return;
    }
    /* Generation 2 is the first that is written to the second slot. */
    if (slot->zero && other->fmt == WAL__FMT_OK &&
        other->manifest.generation == 1 && number == 1) {
        return;
    }
    if (other->fmt == WAL__FMT_OK) {
        check_damage_add_redundant(
            &store->damages, name, offset, WAL__MANIFEST_SLOT_SIZE,
            "slot %u is not valid: %s; the other slot is used, and nothing is "
            "lost",
            number, wal__fmt_text(slot->fmt));
    }
}

static int report_version(const struct check_store *store,
                          const struct slot *slot)
{
    return cli_error(
        store->cli, CLI_FAILED, store->path,
        "the store has format version %" PRIu32 " and features %#" PRIx32
        "; this walcheck knows version %d and features %#x",
        slot->manifest.version, slot->manifest.features.incompat,
        (int)WAL__FORMAT_VERSION, WAL__KNOWN_INCOMPAT | WAL__INCOMPAT_SHADOW);
}

static int select_slot(struct check_store *store, const uint8_t *bytes)
{
    struct slot slots[2] = {{0}};
    const struct slot *best;

    for (unsigned i = 0; i < 2; i++) {
        const uint8_t *at = bytes + (size_t)i * WAL__MANIFEST_SLOT_SIZE;

        slots[i].fmt = wal__manifest_decode(at, &slots[i].manifest);
        slots[i].zero = is_zero_from(at, 0);
        if (slots[i].fmt == WAL__FMT_VERSION ||
            slots[i].fmt == WAL__FMT_FEATURES) {
            return report_version(store, &slots[i]);
        }
    }
    for (unsigned i = 0; i < 2; i++) {
        check_slot(store, bytes + (size_t)i * WAL__MANIFEST_SLOT_SIZE, i,
                   &slots[i], &slots[1 - i]);
    }
    best = &slots[0];
    if (slots[1].fmt == WAL__FMT_OK &&
        (slots[0].fmt != WAL__FMT_OK ||
         slots[1].manifest.generation > slots[0].manifest.generation)) {
        best = &slots[1];
    }
    if (best->fmt != WAL__FMT_OK) {
        if (!has_log(store)) {
            return cli_error(store->cli, CLI_FAILED, store->path,
                             "is not a store: no slot of MANIFEST is valid, "
                             "and there is no directory log/");
        }
        check_damage_add(
            &store->damages, name, 0, WAL__MANIFEST_SIZE,
            "neither slot is valid: %s; the segments identify the store",
            wal__fmt_text(slots[0].fmt));
        return CLI_CONTINUE;
    }
    store->reader.uuid_known = true;
    memcpy(store->reader.uuid, best->manifest.uuid, sizeof(store->reader.uuid));
    store->reader.format_version = best->manifest.version;
    store->format_known = true;
    store->incompat = best->manifest.features.incompat;
    store->reader.has_shadows = best->manifest.has_shadows;
    store->reader.is_replica =
        (best->manifest.features.ro_compat & WAL__RO_COMPAT_REPLICA) != 0;
    store->reader.group_align = best->manifest.group_align;
    return CLI_CONTINUE;
}

static int read_manifest(struct check_store *store, struct cli_file *file)
{
    uint8_t bytes[WAL__MANIFEST_SIZE] = {0};
    uint64_t size = file->size < sizeof(bytes) ? file->size : sizeof(bytes);
    const uint8_t *at = cli_file_fetch(file, 0, size);

    if (at == NULL) {
        check_damage_add(&store->damages, name, file->error_offset, 0,
                         "cannot be read: %s", cli_file_error(file->error));
        return CLI_CONTINUE;
    }
    if (size > 0) {
        memcpy(bytes, at, (size_t)size);
    }
    if (file->size != sizeof(bytes)) {
        check_damage_add_redundant(&store->damages, name, size,
                                   file->size < size ? 0 : file->size - size,
                                   "has %" PRIu64 " bytes, not %d", file->size,
                                   (int)WAL__MANIFEST_SIZE);
    }
    return select_slot(store, bytes);
}

int check_manifest(struct check_store *store)
{
    char *path = check_path(store, name);
    struct cli_file file;
    struct stat status;
    bool is_special;
    int code;
    int error;

    if (stat(store->path, &status) != 0) {
        error = errno;
        free(path);
        return cli_error(store->cli, CLI_FAILED, store->path, "%s",
                         cli_file_error(error));
    }
    error = cli_file_open(&file, path);
    free(path);
    if (error == 0) {
        code = read_manifest(store, &file);
        cli_file_close(&file);
        return code;
    }
    is_special = error == ELOOP || error == EISDIR || error == ENXIO;
    if (error != ENOENT && !is_special) {
        return cli_error(store->cli, CLI_FAILED, store->path,
                         "MANIFEST cannot be opened: %s",
                         cli_file_error(error));
    }
    if (!has_log(store)) {
        return cli_error(store->cli, CLI_FAILED, store->path,
                         "is not a store: it has no MANIFEST");
    }
    check_damage_add(&store->damages, name, 0, 0,
                     "%s; the segments identify the store",
                     is_special ? cli_file_error(error) : "is missing");
    return CLI_CONTINUE;
}
