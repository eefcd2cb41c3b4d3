/*
 * compact_store.c - what tests of rewritten segments do to a store through the interface:
 *
 *   compact_store STORE              compact it
 *   compact_store STORE --erase      compact all that has something dead
 *   compact_store STORE --stop       stop after the first new segment
 *   compact_store STORE --fill SEED  change it: sessions, forks, entries,
 *                                    heads, documents, redactions, deletions
 *   compact_store STORE --describe   print all that the interface answers about it
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentwal/admin.h"
#include "tests/lib/kit/describe_kit.h"

enum {
    SESSIONS = 12, /* ids of sessions; of deleted ones they are used again */
    SESSIONS_MAX = 24,
    OPERATIONS = 400
};

struct fill {
    struct wal_store *store;
    uint64_t state; /* of the random numbers */
    uint64_t seed;
    unsigned sessions; /* that are in use */
    unsigned entries;  /* appended so far */
    struct wal_error error;
};

static unsigned pick(struct fill *fill, unsigned limit)
{
    fill->state = fill->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(fill->state >> 33) % limit;
}

static struct wal_slice slice(const char *text)
{
    return (struct wal_slice){text, strlen(text)};
}

/* The id of one of the entries that were appended, whichever session has it. */
static struct wal_slice pick_entry(struct fill *fill, char id[32])
{
    unsigned number = fill->entries == 0 ? 0 : pick(fill, fill->entries);

    snprintf(id, 32, "e%llu-%u", (unsigned long long)fill->seed, number);
    return slice(id);
}

static enum wal_status append(struct fill *fill, struct wal_session *session)
{
    static char payload[300 * 1024];
    struct wal_append_options options = WAL_INIT(wal_append_options);
    struct wal_entry entries[8];
    char ids[8][32];
    char parent[32];
    unsigned count = 1 + pick(fill, 8);
    unsigned size = pick(fill, 100) == 0 ? 280 * 1024 : pick(fill, 2000);

    snprintf(payload, sizeof(payload), "{\"role\":\"user\",\"content\":\"%0*u\"}", (int)size + 1,
             fill->entries);
    for (unsigned i = 0; i < count; i++) {
        snprintf(ids[i], sizeof(ids[i]), "e%llu-%u", (unsigned long long)fill->seed,
                 fill->entries + i);
        entries[i] = (struct wal_entry){
            .struct_size = sizeof(entries[i]),
            .flags = pick(fill, 6) == 0 ? (uint32_t)WAL_ENTRY_LINE : 0,
            .stream = pick(fill, 5) == 0,
            .id = slice(ids[i]),
            .type = slice("message"),
            .timestamp = slice(pick(fill, 3) == 0 ? "none" : ""),
            .payload = slice(payload),
        };
    }
    if (pick(fill, 8) == 0) {
        entries[0].parent_id = pick_entry(fill, parent);
    }
    fill->entries += count;
    options.durability = WAL_WRITTEN;
    return wal_append(session, entries, count, &options, NULL, &fill->error);
}

static enum wal_status put_document(struct fill *fill, struct wal_session *session)
{
    struct wal_doc doc = WAL_INIT(wal_doc);
    char key[16];

    snprintf(key, sizeof(key), "key-%u", pick(fill, 5));
    doc.key = slice(key);
    doc.value = slice("{\"value\":1}");
    if (pick(fill, 6) == 0) {
        session = NULL;
    }
    return pick(fill, 5) == 0 ? wal_doc_delete(fill->store, session, &doc, NULL, &fill->error)
                              : wal_doc_put(fill->store, session, &doc, NULL, &fill->error);
}

static enum wal_status move_head(struct fill *fill, struct wal_session *session)
{
    static const char *const names[] = {"", "kept", "other"};
    struct wal_head head = WAL_INIT(wal_head);
    char id[32];

    head.name = slice(names[pick(fill, 3)]);
    head.stream = pick(fill, 4) == 0;
    head.entry_id = pick_entry(fill, id);
    if (pick(fill, 10) == 0) {
        head.entry_id = slice("");
    }
    return wal_head_move(session, &head, NULL, &fill->error);
}

static enum wal_status fork_session(struct fill *fill, struct wal_session *session)
{
    struct wal_session_options options = WAL_INIT(wal_session_options);
    struct wal_session *fork = NULL;
    enum wal_status status;
    char name[16];
    char id[32];

    snprintf(name, sizeof(name), "s%u", pick(fill, fill->sessions));
    options.id = slice(name);
    status = wal_session_fork(session, pick(fill, 2) == 0 ? pick_entry(fill, id) : slice(""),
                              &options, &fork, &fill->error);
    wal_session_close(fork);
    return status;
}

static int32_t set_title(void *ctx, const struct wal_session_info *now,
                         struct wal_session_change *change)
{
    (void)now;
    change->fields = WAL_CHANGE_TITLE;
    change->title = slice(ctx);
    return 0;
}

static enum wal_status change(struct fill *fill)
{
    struct wal_session_options options = WAL_INIT(wal_session_options);
    struct wal_session *session = NULL;
    enum wal_status status;
    char title[32];
    char name[16];
    char id[32];
    unsigned what = pick(fill, 100);

    snprintf(name, sizeof(name), "s%u", pick(fill, fill->sessions));
    options.id = slice(name);
    status = wal_session_open_or_create(fill->store, &options, &session, NULL, &fill->error);
    if (status != WAL_OK) {
        return status;
    }
    if (what < 50) {
        status = append(fill, session);
    } else if (what < 62) {
        status = put_document(fill, session);
    } else if (what < 74) {
        status = move_head(fill, session);
    } else if (what < 82) {
        status = fork_session(fill, session);
    } else if (what < 88) {
        status =
            wal_session_redact(session, pick_entry(fill, id), slice("secret"), NULL, &fill->error);
    } else if (what < 95) {
        snprintf(title, sizeof(title), "title %u", pick(fill, 1000));
        status = wal_session_update(session, set_title, title, &fill->error);
    } else {
        status = wal_session_delete(session, &fill->error);
    }
    wal_session_close(session);
    return status;
}

/* A change may be refused for what it names; nothing else may fail. */
static enum wal_status fill_store(struct wal_store *store, uint64_t seed, struct wal_error *error)
{
    struct fill fill = {.store = store,
                        .state = seed,
                        .seed = seed,
                        .sessions = seed % 2 == 0 ? SESSIONS : SESSIONS_MAX,
                        .error = WAL_INIT(wal_error)};

    for (unsigned i = 0; i < OPERATIONS; i++) {
        enum wal_status status = change(&fill);

        if (status == WAL_EIO || status == WAL_ECORRUPT || status == WAL_ENOMEM ||
            status == WAL_EDAMAGED) {
            *error = fill.error;
            return status;
        }
    }
    return WAL_OK;
}

static int32_t stop(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx;
    return done < total;
}

static enum wal_status compact(struct wal_store *store, const char *how, struct wal_error *error)
{
    struct wal_store_compact_options options = WAL_INIT(wal_store_compact_options);
    struct wal_store_compact_result result = WAL_INIT(wal_store_compact_result);
    enum wal_status status;

    if (how != NULL && strcmp(how, "--erase") == 0) {
        options.flags = WAL_STORE_COMPACT_ERASE;
    }
    if (how != NULL && strcmp(how, "--stop") == 0) {
        options.progress = stop;
    }
    status = wal_store_compact(store, &options, &result, error);
    status = status == WAL_ECALLBACK ? WAL_OK : status;
    if (status == WAL_OK) {
        printf("{\"segments\":%llu,\"rewritten\":%llu,\"refused\":%llu,"
               "\"kept\":%llu,\"dropped\":%llu,\"erased\":%llu}\n",
               (unsigned long long)result.segments, (unsigned long long)result.rewritten,
               (unsigned long long)result.refused, (unsigned long long)result.kept_records,
               (unsigned long long)result.dropped_records,
               (unsigned long long)result.erased_records);
    }
    return status;
}

int main(int argc, char **argv)
{
    struct wal_open_options options = WAL_INIT(wal_open_options);
    struct wal_error error = WAL_INIT(wal_error);
    struct wal_store *store = NULL;
    enum wal_status status;

    if (argc < 2) {
        return 2;
    }
    status = wal_open(argv[1], &options, &store, &error);
    if (status == WAL_OK && argc == 4 && strcmp(argv[2], "--fill") == 0) {
        status = fill_store(store, strtoull(argv[3], NULL, 10), &error);
    } else if (status == WAL_OK && argc == 3 && strcmp(argv[2], "--describe") == 0) {
        char *text = kit_describe(store);

        (void)fputs(text, stdout);
        free(text);
    } else if (status == WAL_OK) {
        status = compact(store, argc == 3 ? argv[2] : NULL, &error);
    }
    if (store != NULL && wal_close(store, NULL) != WAL_OK && status == WAL_OK) {
        status = WAL_EIO;
    }
    if (status != WAL_OK) {
        fprintf(stderr, "compact_store: %s: %s\n", error.file, error.text);
        return 1;
    }
    return 0;
}
