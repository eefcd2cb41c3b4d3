/*
 * struct_size.h - reads and writes the structs of the public interface, whose callers may have been
 * compiled with an older or newer agentwal.h (agentwal.h, Conventions, Structs). Any thread;
 * nothing is shared.
 */
#ifndef AGENTWAL_ENGINE_BASE_STRUCT_SIZE_H
#define AGENTWAL_ENGINE_BASE_STRUCT_SIZE_H

#include <stdalign.h>

#include "engine/base/heap.h"

/* A public struct as this library knows it. */
struct wal__struct {
    const char *name;
    uint32_t size;
    uint32_t alignment;
};

#define WAL__STRUCT(tag)          \
    (&(const struct wal__struct){ \
        .name = #tag, .size = sizeof(struct tag), .alignment = alignof(struct tag)})

/* Copies a struct that the caller filled to *own, of this library's size, with zeros for the fields
 * that the caller does not know; all zeros but for struct_size when given is NULL. WAL_EINVAL: the
 * size is not valid, or bytes that this library does not know are not zero. */
enum wal_status wal__struct_load(const struct wal__struct *type, void *own, const void *given,
                                 struct wal_error *error) WAL_MUST_USE;

/* The same for an array, whose stride is the struct_size of its first element; the others must have
 * it too. *loaded is the given array if its structs have this library's size, or else the copies in
 * `copies`, an initialised buffer. A NULL array is loaded as NULL. Also WAL_ENOMEM. */
enum wal_status wal__struct_load_array(const struct wal__struct *type, const void *given,
                                       uint64_t count, struct wal__buf *copies, const void **loaded,
                                       struct wal_error *error) WAL_MUST_USE;

/* Returns whether the library can fill *given: WAL_EINVAL when it is NULL or has no valid size. */
enum wal_status wal__struct_check_output(const struct wal__struct *type, const void *given,
                                         struct wal_error *error) WAL_MUST_USE;

/* The same for an output that may be NULL. */
enum wal_status wal__struct_check_optional(const struct wal__struct *type, const void *given,
                                           struct wal_error *error) WAL_MUST_USE;

/* The struct to fill for the caller: *given itself if it has this library's size, or else *own,
 * zeroed. Pass it to wal__struct_store. */
void *wal__struct_target(const struct wal__struct *type, void *given, void *own);

/* Copies what the caller knows of *own to *given, and zeroes what only the caller knows. Does
 * nothing when they are the same struct, or given is NULL. given->struct_size remains. */
void wal__struct_store(const struct wal__struct *type, void *given, const void *own);

#endif
