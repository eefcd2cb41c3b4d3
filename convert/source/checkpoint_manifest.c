/*
 * checkpoint_manifest.c - manifests of checkpoints of other session stores.
 *
 * Invariant: values of a manifest are checked here as far as the manifest alone allows: a hash
 * consists of hexadecimal digits only, so that it is a safe file name. The engine checks the paths.
 */
#include "convert/source/checkpoint_manifest.h"

#include <stdio.h>
#include <string.h>

#include "format/json/json_scan.h"
#include "format/json/json_text.h"
#include "format/payload/timestamp.h"

#define KEY_MAX 32

static const struct wal__checkpoint_layout layouts[] = {
    {
        .name = "sdk",
        .contents = "blobs",
        .id = "checkpoint_id",
        .created = "created_at",
        .files = "files",
        .path = "path",
        .hash = "hash",
        .mode = "mode",
    },
    {
        .name = "spec11",
        .contents = "files",
        .id = "UserMessageUUID",
        .created = "CreatedAt",
        .files = "Files",
        .path = "Path",
        .exists = "Exists",
        .hash = "Hash",
        .size = "Size",
        .mode = "Mode",
    },
};

const struct wal__checkpoint_layout *wal__checkpoint_layout_find(const char *name)
{
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        if (strcmp(layouts[i].name, name) == 0) {
            return &layouts[i];
        }
    }
    return NULL;
}

/* --- members ------------------------------------------------------------- */

/* A member to find. Names are compared in lower case without underscores; of members with equal
 * names the last one counts. */
struct member {
    const char *name;
    const char *alternative; /* alternative name, or NULL */
    struct wal__json_token value;
};

static struct member *find_member(struct member *members, size_t count, struct wal__json_span key)
{
    char name[KEY_MAX + 1];
    size_t size = 0;
    size_t name_size = 0;

    if (wal__json_unescape(key, (uint8_t *)name, KEY_MAX, &size, NULL) != WAL__JSON_OK) {
        return NULL;
    }
    for (size_t i = 0; i < size; i++) {
        if (name[i] != '_') {
            bool is_capital = name[i] >= 'A' && name[i] <= 'Z';

            name[name_size++] = (char)(is_capital ? name[i] - 'A' + 'a' : name[i]);
        }
    }
    name[name_size] = '\0';
    for (size_t i = 0; i < count; i++) {
        if (strcmp(members[i].name, name) == 0 ||
            (members[i].alternative != NULL && strcmp(members[i].alternative, name) == 0)) {
            return &members[i];
        }
    }
    return NULL;
}

/* Finds members of an object. Returns NULL, or a description of the fault. */
static const char *read_members(struct wal__json_span object, struct member *members, size_t count)
{
    struct wal__json_scan scan;
    struct wal__json_token token = {.kind = WAL__JSON_NONE};
    enum wal__json_status status;

    wal__json_scan_init(&scan, object.data, object.size);
    status = wal__json_scan_next(&scan, &token);
    if (status == WAL__JSON_OK && token.kind != WAL__JSON_OBJECT) {
        return "not an object";
    }
    while (status == WAL__JSON_OK &&
           (status = wal__json_scan_next(&scan, &token)) == WAL__JSON_OK &&
           token.kind == WAL__JSON_KEY) {
        struct member *member = find_member(members, count, token.span);

        status = wal__json_scan_skip(&scan, &token);
        if (status == WAL__JSON_OK && member != NULL) {
            member->value = token;
        }
    }
    if (status == WAL__JSON_OK) {
        status = wal__json_scan_next(&scan, &token);
    }
    return status == WAL__JSON_OK ? NULL : wal__json_status_text(status);
}

static bool is_present(const struct member *member)
{
    return member->value.kind != WAL__JSON_NONE && member->value.kind != WAL__JSON_NULL;
}

/* Reads a string. Returns false for other values. */
static bool read_text(struct wal__heap_arena *arena, const struct member *member,
                      struct wal_slice *text)
{
    struct wal__json_span span = member->value.span;
    bool has_nul = false;
    size_t size = 0;
    char *copy;

    if (member->value.kind != WAL__JSON_STRING) {
        return false;
    }
    copy = wal__arena_alloc(&arena->arena, span.size + 1);
    if (copy == NULL ||
        wal__json_unescape(span, (uint8_t *)copy, span.size, &size, &has_nul) != WAL__JSON_OK) {
        return false;
    }
    copy[size] = '\0';
    *text = (struct wal_slice){copy, size};
    return true;
}

static bool read_number(const struct member *member, uint64_t max, uint64_t *number)
{
    int64_t value;

    if (member->value.kind != WAL__JSON_NUMBER ||
        wal__json_integer(member->value.span, &value) != WAL__JSON_OK || value < 0 ||
        (uint64_t)value > max) {
        return false;
    }
    *number = (uint64_t)value;
    return true;
}

/* --- one file ------------------------------------------------------------ */

enum { PATH, EXISTS, HASH, SIZE, MODE, FILE_MEMBERS };

/* Reads a SHA-256 in hexadecimal; a missing or empty hash is valid. */
static bool read_hash(const struct member *member, char hash[WAL__CHECKPOINT_HASH_SIZE + 1])
{
    size_t size = 0;

    if (!is_present(member)) {
        return true;
    }
    if (member->value.kind != WAL__JSON_STRING ||
        wal__json_unescape(member->value.span, (uint8_t *)hash, WAL__CHECKPOINT_HASH_SIZE, &size,
                           NULL) != WAL__JSON_OK) {
        return false;
    }
    hash[size] = '\0';
    return size == 0 || (size == WAL__CHECKPOINT_HASH_SIZE &&
                         strspn(hash, "0123456789abcdefABCDEF") == WAL__CHECKPOINT_HASH_SIZE);
}

/* Sets is_absent. Returns false when the file exists but has no hash. */
static bool read_exists(const struct member *member, struct wal__checkpoint_manifest_file *listed)
{
    bool has_hash = listed->hash[0] != '\0';

    listed->is_absent = !has_hash;
    if (!is_present(member)) {
        return true;
    }
    if (member->value.kind == WAL__JSON_FALSE) {
        listed->is_absent = true;
        return true;
    }
    return member->value.kind == WAL__JSON_TRUE && has_hash;
}

static const char *read_file(struct wal__heap_arena *arena, struct wal__json_span object,
                             struct wal__checkpoint_manifest_file *listed)
{
    struct member members[FILE_MEMBERS] = {
        [PATH] = {.name = "path"},
        [EXISTS] = {.name = "exists"},
        [HASH] = {.name = "hash", .alternative = "sha256"},
        [SIZE] = {.name = "size"},
        [MODE] = {.name = "mode"},
    };
    const char *problem = read_members(object, members, FILE_MEMBERS);
    uint64_t mode = 0;

    if (problem != NULL) {
        return problem;
    }
    if (!read_hash(&members[HASH], listed->hash)) {
        return "the hash of a file is not a SHA-256";
    }
    if (!read_exists(&members[EXISTS], listed)) {
        return "a file exists without a hash";
    }
    listed->has_size = is_present(&members[SIZE]);
    if (listed->has_size && !read_number(&members[SIZE], INT64_MAX, &listed->size)) {
        return "the size of a file is not a number";
    }
    if (is_present(&members[MODE]) && !read_number(&members[MODE], 07777, &mode)) {
        return "the mode of a file has more than permission bits";
    }
    listed->mode = (uint32_t)mode;
    return read_text(arena, &members[PATH], &listed->path) ? NULL : "a file has no path";
}

static const char *read_files(struct wal__json_span array,
                              struct wal__checkpoint_manifest *manifest)
{
    struct wal__json_scan scan;
    struct wal__json_token token;
    const char *problem = NULL;

    wal__json_scan_init(&scan, array.data, array.size);
    if (wal__json_scan_next(&scan, &token) != WAL__JSON_OK || token.kind != WAL__JSON_ARRAY) {
        return "the files are not an array";
    }
    while (problem == NULL && wal__json_scan_skip(&scan, &token) == WAL__JSON_OK &&
           token.kind != WAL__JSON_ARRAY_END) {
        struct wal__checkpoint_manifest_file listed = {.size = 0};
        struct wal__checkpoint_manifest_file *files;

        problem = read_file(manifest->arena, token.span, &listed);
        if (problem != NULL) {
            break;
        }
        files = wal__arena_grow(&manifest->arena->arena, manifest->files, manifest->count,
                                &manifest->capacity, sizeof(files[0]));
        if (files == NULL) {
            return "no memory";
        }
        manifest->files = files;
        files[manifest->count++] = listed;
    }
    return problem;
}

/* --- the manifest -------------------------------------------------------- */

enum { ID, CREATED, FILES, MEMBERS };

const char *wal__checkpoint_manifest_read(struct wal__checkpoint_manifest *manifest,
                                          const void *data, size_t size)
{
    struct member members[MEMBERS] = {
        [ID] = {.name = "checkpointid", .alternative = "usermessageuuid"},
        [CREATED] = {.name = "createdat"},
        [FILES] = {.name = "files"},
    };
    const struct wal__json_span text = {data, size};
    const char *problem = read_members(text, members, MEMBERS);
    struct wal_slice id = {NULL, 0};

    if (problem != NULL) {
        return problem;
    }
    if (is_present(&members[ID]) && !read_text(manifest->arena, &members[ID], &id)) {
        return "the id is not a string";
    }
    manifest->id = (char *)id.data;
    if (manifest->id != NULL && strlen(manifest->id) != id.size) {
        return "the id holds a zero byte";
    }
    if (is_present(&members[CREATED]) &&
        !wal__model_time_read(members[CREATED].value.span, &manifest->created_ms)) {
        return "the creation time is not valid";
    }
    if (members[FILES].value.kind == WAL__JSON_NONE) {
        return "the list of files is missing";
    }
    /* Some writers encode an empty list as null. */
    return is_present(&members[FILES]) ? read_files(members[FILES].value.span, manifest) : NULL;
}
