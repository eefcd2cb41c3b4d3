/*
 * struct_kit.h - a store with one of each thing, for tests of public structs of
 * other sizes than the library's.
 */
#ifndef AGENTWAL_TESTS_LIB_KIT_STRUCT_KIT_H
#define AGENTWAL_TESTS_LIB_KIT_STRUCT_KIT_H

#include "agentwal/admin.h"
#include "agentwal/blob.h"
#include "agentwal/checkpoint.h"
#include "agentwal/convert.h"
#include "tests/lib/kit/store_kit.h"

enum {
    STRUCT_MORE = 16, /* bytes that a newer version has */
    STRUCT_WORDS =
        64 /* of 8 bytes: room for each struct but errors and paths */
};

struct struct_world {
    struct wal_store *store;
    struct wal_session *session; /* with entries a, b, c; document key;
                                  * checkpoint c of a file that is not there */
    struct wal_view *view;
    uint8_t digest[WAL_DIGEST_SIZE];
    char root[4096];
    int next; /* for ids */
    char id[32];
};

/* Passes a struct to a call. */
typedef enum wal_status struct_call(struct struct_world *world, void *given,
                                    struct wal_error *error);

void struct_world_init(struct struct_world *world);
void struct_world_deinit(struct struct_world *world);
/* An id that no other call returned, until the next call. */
struct wal_slice struct_world_id(struct struct_world *world);
int32_t struct_put_nothing(void *ctx, const void *data, uint64_t size);
struct wal_view *struct_open_view(struct struct_world *world);

#endif
