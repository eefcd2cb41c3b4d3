/*
 * struct_size.c - structs of callers of other versions (struct_size.h). Invariant: only bytes
 * inside the caller's struct_size are read or written.
 */
#include "engine/base/struct_size.h"

#include <string.h>

#include "engine/base/error.h"
#include "format/bytes/assert.h"

enum {
    SIZE_LIMIT = 65536 /* a larger struct_size was never set */
};

/* Every public struct begins with its struct_size. */
static uint32_t size_of(const void *given)
{
    uint32_t size;

    memcpy(&size, given, sizeof(size));
    return size;
}

static enum wal_status check_size(const struct wal__struct *type, const void *given,
                                  struct wal_error *error)
{
    uint32_t size = size_of(given);

    if (size == 0 || size > SIZE_LIMIT || size % type->alignment != 0) {
        return wal__invalid(error,
                            "struct_size of struct %s is %u; set it to the "
                            "size of the struct, as WAL_INIT(%s) does",
                            type->name, size, type->name);
    }
    return WAL_OK;
}

/* The bytes that only the caller knows are zero. */
static enum wal_status check_rest(const struct wal__struct *type, const void *given,
                                  struct wal_error *error)
{
    const uint8_t *bytes = given;
    uint32_t size = size_of(given);

    for (uint32_t i = type->size; i < size; i++) {
        if (bytes[i] != 0) {
            return wal__invalid(error,
                                "struct %s has %u bytes that this version of "
                                "the library does not know, and that are not "
                                "zero",
                                type->name, size - type->size);
        }
    }
    return WAL_OK;
}

/* The caller's part of *own, the rest zero. */
static void extend(const struct wal__struct *type, void *own, const void *given)
{
    uint32_t size = size_of(given);

    memset(own, 0, type->size);
    memcpy(own, given, size < type->size ? size : type->size);
    memcpy(own, &type->size, sizeof(type->size));
}

enum wal_status wal__struct_load(const struct wal__struct *type, void *own, const void *given,
                                 struct wal_error *error)
{
    enum wal_status status;

    if (given == NULL) {
        extend(type, own, &(const uint32_t){sizeof(uint32_t)});
        return WAL_OK;
    }
    status = check_size(type, given, error);
    if (status == WAL_OK) {
        status = check_rest(type, given, error);
    }
    if (status == WAL_OK) {
        extend(type, own, given);
    }
    return status;
}

static enum wal_status load_element(const struct wal__struct *type, void *own, const void *given,
                                    uint32_t stride, struct wal_error *error)
{
    if (size_of(given) != stride) {
        return wal__invalid(error,
                            "struct_size of struct %s is %u in one element of "
                            "an array and %u in the first",
                            type->name, size_of(given), stride);
    }
    return wal__struct_load(type, own, given, error);
}

enum wal_status wal__struct_load_array(const struct wal__struct *type, const void *given,
                                       uint64_t count, struct wal__buf *copies, const void **loaded,
                                       struct wal_error *error)
{
    const uint8_t *from = given;
    uint8_t *to;
    uint32_t stride;
    enum wal_status status;

    *loaded = given;
    if (given == NULL || count == 0) {
        return WAL_OK;
    }
    stride = size_of(given);
    if (stride == type->size) {
        for (uint64_t i = 0; i < count; i++) {
            if (size_of(from + i * stride) != stride) {
                return load_element(type, NULL, from + i * stride, stride, error);
            }
        }
        return WAL_OK;
    }
    if (count > SIZE_MAX / type->size ||
        wal__buf_reserve(copies, (size_t)count * type->size, &to) != WAL_OK) {
        return wal__no_memory(error);
    }
    for (uint64_t i = 0; i < count; i++) {
        status = load_element(type, to + i * type->size, from + i * stride, stride, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    *loaded = to;
    return WAL_OK;
}

enum wal_status wal__struct_check_output(const struct wal__struct *type, const void *given,
                                         struct wal_error *error)
{
    if (given == NULL) {
        return wal__invalid(error, "the place for struct %s is null", type->name);
    }
    return check_size(type, given, error);
}

enum wal_status wal__struct_check_optional(const struct wal__struct *type, const void *given,
                                           struct wal_error *error)
{
    return given == NULL ? WAL_OK : check_size(type, given, error);
}

void *wal__struct_target(const struct wal__struct *type, void *given, void *own)
{
    if (given != NULL && size_of(given) == type->size) {
        return given;
    }
    extend(type, own, &(const uint32_t){sizeof(uint32_t)});
    return own;
}

void wal__struct_store(const struct wal__struct *type, void *given, const void *own)
{
    const size_t first = sizeof(uint32_t);
    uint32_t size;

    if (given == NULL || given == own) {
        return;
    }
    size = size_of(given);
    WAL__ASSERT(size >= first && size_of(own) == type->size);
    memcpy((uint8_t *)given + first, (const uint8_t *)own + first,
           (size < type->size ? size : type->size) - first);
    if (size > type->size) {
        memset((uint8_t *)given + type->size, 0, size - type->size);
    }
}
