/*
 * store_object.c - the names of a store's objects (store_object.h).
 */
#include "remote/layout/store_object.h"

#include <stdio.h>
#include <string.h>

#include "format/bytes/assert.h"

enum {
    NUMBER = 16, /* digits */
    UUID = 32
};

static const char digits[] = "0123456789abcdef";

bool wal__hex_parse(const char *text, size_t count, uint64_t *number)
{
    uint64_t value = 0;

    WAL__ASSERT(count <= NUMBER);
    for (size_t i = 0; i < count; i++) {
        const char *found = text[i] != '\0' ? strchr(digits, text[i]) : NULL;

        if (found == NULL) {
            return false;
        }
        value = value << 4 | (uint64_t)(found - digits);
    }
    *number = value;
    return true;
}

void wal__uuid_format(const uint8_t uuid[16], char out[WAL__UUID_TEXT_SIZE])
{
    for (size_t i = 0; i < 16; i++) {
        out[2 * i] = digits[uuid[i] >> 4];
        out[2 * i + 1] = digits[uuid[i] & 0xf];
    }
    out[UUID] = '\0';
}

bool wal__uuid_parse(const char *text, size_t size, uint8_t uuid[16])
{
    static const size_t hyphens[] = {8, 13, 18, 23};
    char plain[UUID];
    size_t count = 0;
    size_t hyphen = 0;
    uint64_t value = 0;

    if (size != UUID && size != UUID + 4) {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        if (size > UUID && hyphen < 4 && i == hyphens[hyphen]) {
            if (text[i] != '-') {
                return false;
            }
            hyphen++;
        } else {
            plain[count++] = text[i];
        }
    }
    for (size_t i = 0; i < 16; i++) {
        if (!wal__hex_parse(plain + 2 * i, 2, &value)) {
            return false;
        }
    }
    for (size_t i = 0; i < 16; i++) {
        (void)wal__hex_parse(plain + 2 * i, 2, &value);
        uuid[i] = (uint8_t)value;
    }
    return true;
}

void wal__store_object_prefix(const struct wal__store_object *object,
                              char out[WAL__STORE_OBJECT_SIZE])
{
    static const char *const rooms[] = {
        [WAL__OBJECT_EPOCH] = "epoch", [WAL__OBJECT_PART] = "part",
        [WAL__OBJECT_BASE] = "base",   [WAL__OBJECT_SEGMENT] = "seg",
        [WAL__OBJECT_OWN] = "own",     [WAL__OBJECT_BUNDLE] = "bundle",
    };
    static const uint8_t none[16];
    char id[WAL__UUID_TEXT_SIZE];
    char uuid[WAL__UUID_TEXT_SIZE];

    wal__uuid_format(object->uuid, uuid);
    if (object->kind == WAL__OBJECT_PART && object->epoch != 0) {
        (void)snprintf(out, WAL__STORE_OBJECT_SIZE, "%s/part/%016llx/", uuid,
                       (unsigned long long)object->epoch);
        return;
    }
    if ((object->kind == WAL__OBJECT_OWN ||
         object->kind == WAL__OBJECT_BUNDLE) &&
        memcmp(object->id, none, sizeof(none)) != 0) {
        wal__uuid_format(object->id, id);
        (void)snprintf(out, WAL__STORE_OBJECT_SIZE, "%s/%s/%s/", uuid,
                       rooms[object->kind], id);
        return;
    }
    (void)snprintf(out, WAL__STORE_OBJECT_SIZE, "%s/%s/", uuid,
                   rooms[object->kind]);
}

void wal__store_object_format(const struct wal__store_object *object,
                              char out[WAL__STORE_OBJECT_SIZE])
{
    uint64_t number =
        object->kind == WAL__OBJECT_EPOCH ? object->epoch : object->number;
    size_t size;

    wal__store_object_prefix(object, out);
    size = strlen(out);
    (void)snprintf(out + size, WAL__STORE_OBJECT_SIZE - size, "%016llx",
                   (unsigned long long)number);
    if (object->kind == WAL__OBJECT_SEGMENT) {
        size = strlen(out);
        out[size++] = '/';
        wal__uuid_format(object->id, out + size);
    }
}

/* Takes a text that *at must begin with. */
static bool take(const char **at, const char *text)
{
    size_t size = strlen(text);

    if (strncmp(*at, text, size) != 0) {
        return false;
    }
    *at += size;
    return true;
}

static bool take_hex(const char **at, uint64_t *number)
{
    if (strlen(*at) < NUMBER || !wal__hex_parse(*at, NUMBER, number)) {
        return false;
    }
    *at += NUMBER;
    return true;
}

/* Of an epoch, a part or a base. */
static bool take_number(const char **at, uint64_t *number)
{
    return take_hex(at, number) && *number > 0 &&
           *number <= WAL__STORE_OBJECT_NUMBER_MAX;
}

/* Of an object of a session: its id, and a number. */
static bool take_of_session(const char **at, struct wal__store_object *object)
{
    if (strlen(*at) <= UUID || !wal__uuid_parse(*at, UUID, object->id) ||
        (*at)[UUID] != '/') {
        return false;
    }
    *at += UUID + 1;
    return take_number(at, &object->number);
}

/* Reads what follows UUID and a slash. */
static bool parse_rest(const char *at, struct wal__store_object *object)
{
    bool is_valid = false;

    if (take(&at, "epoch/")) {
        object->kind = WAL__OBJECT_EPOCH;
        is_valid = take_number(&at, &object->epoch);
    } else if (take(&at, "part/")) {
        object->kind = WAL__OBJECT_PART;
        is_valid = take_number(&at, &object->epoch) && take(&at, "/") &&
                   take_number(&at, &object->number);
    } else if (take(&at, "base/")) {
        object->kind = WAL__OBJECT_BASE;
        is_valid = take_number(&at, &object->number);
    } else if (take(&at, "seg/")) {
        object->kind = WAL__OBJECT_SEGMENT;
        is_valid = take_number(&at, &object->number) && take(&at, "/") &&
                   strlen(at) == UUID && wal__uuid_parse(at, UUID, object->id);
        at += is_valid ? UUID : 0;
    } else if (take(&at, "own/")) {
        object->kind = WAL__OBJECT_OWN;
        is_valid = take_of_session(&at, object);
    } else if (take(&at, "bundle/")) {
        object->kind = WAL__OBJECT_BUNDLE;
        is_valid = take_of_session(&at, object);
    }
    return is_valid && *at == '\0';
}

bool wal__store_object_parse(const char *name, struct wal__store_object *object)
{
    struct wal__store_object parsed = {.epoch = 0};

    if (strlen(name) <= UUID || name[UUID] != '/' ||
        !wal__uuid_parse(name, UUID, parsed.uuid) ||
        !parse_rest(name + UUID + 1, &parsed)) {
        return false;
    }
    *object = parsed;
    return true;
}
