/*
 * report.c - lists of damage, and the result as text or as JSON.
 *
 * Invariant: a list owns its texts.
 *
 * Threads: a list belongs to one thread; check_feature any; all other functions the main thread.
 */
#include "tools/walcheck/walcheck.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/json.h"

enum { REASON_SIZE = 400 };

static struct check_damage *add(struct check_damages *damages, enum check_kind kind,
                                const char *file, uint64_t offset, uint64_t length,
                                const char *reason, va_list arguments)
{
    char text[REASON_SIZE];
    struct check_damage *damage;

    vsnprintf(text, sizeof(text), reason, arguments);
    damage = CLI_ADD(damages);
    *damage = (struct check_damage){
        .kind = kind,
        .file = cli_copy_text(file, strlen(file)),
        .offset = offset,
        .length = length,
        .reason = cli_copy_text(text, strlen(text)),
    };
    return damage;
}

struct check_damage *check_damage_add(struct check_damages *damages, enum check_kind kind,
                                      const char *file, uint64_t offset, uint64_t length,
                                      const char *reason, ...)
{
    struct check_damage *damage;
    va_list arguments;

    va_start(arguments, reason);
    damage = add(damages, kind, file, offset, length, reason, arguments);
    va_end(arguments);
    return damage;
}

/* The item with the same file, offset and reason, or null. */
static struct check_damage *find_same(const struct check_damages *damages,
                                      const struct check_damage *damage)
{
    for (size_t i = 0; i < damages->count; i++) {
        struct check_damage *other = &damages->items[i];

        if (other != damage && other->offset == damage->offset &&
            strcmp(other->file, damage->file) == 0 && strcmp(other->reason, damage->reason) == 0) {
            return other;
        }
    }
    return NULL;
}

static void deinit(struct check_damage *damage)
{
    free(damage->sequences);
    free(damage->file);
    free(damage->reason);
    free(damage->sessions);
}

struct check_damage *check_damage_add_once(struct check_damages *damages, const char *file,
                                           uint64_t offset, uint64_t length, const char *reason,
                                           ...)
{
    struct check_damage *damage;
    struct check_damage *same;
    va_list arguments;

    va_start(arguments, reason);
    damage = add(damages, CHECK_LOSS, file, offset, length, reason, arguments);
    va_end(arguments);
    same = find_same(damages, damage);
    if (same == NULL) {
        return damage;
    }
    deinit(damage);
    damages->count--;
    return same;
}

/* The number of items that are damage. */
static size_t damages_count(const struct check_damages *damages)
{
    size_t count = 0;

    for (size_t i = 0; i < damages->count; i++) {
        count += damages->items[i].kind != CHECK_NOTE;
    }
    return count;
}

void check_damage_sequence(struct check_damage *damage, uint64_t sequence)
{
    *CLI_PUSH(damage->sequences, damage->sequence_count, damage->sequence_capacity) = sequence;
}

void check_damage_sort_sequences(struct check_damage *damage)
{
    size_t kept = 0;

    if (damage->sequence_count == 0) {
        return;
    }
    qsort(damage->sequences, damage->sequence_count, sizeof(*damage->sequences), wal__compare_u64);
    for (size_t i = 0; i < damage->sequence_count; i++) {
        if (kept == 0 || damage->sequences[kept - 1] != damage->sequences[i]) {
            damage->sequences[kept++] = damage->sequences[i];
        }
    }
    damage->sequence_count = kept;
    damage->first_sequence = damage->sequences[0];
    damage->last_sequence = damage->sequences[kept - 1];
}

void check_damage_session(struct check_damage *damage, uint32_t session)
{
    if (session == 0) {
        return;
    }
    for (size_t i = 0; i < damage->session_count; i++) {
        if (damage->sessions[i] == session) {
            return;
        }
    }
    *CLI_PUSH(damage->sessions, damage->session_count, damage->session_capacity) = session;
}

void check_damages_move(struct check_damages *to, struct check_damages *from)
{
    for (size_t i = 0; i < from->count; i++) {
        *CLI_ADD(to) = from->items[i];
    }
    free(from->items);
    *from = (struct check_damages){.items = NULL};
}

void check_damages_sort(struct check_damages *damages)
{
    struct check_damage *sorted = cli_alloc((damages->count + 1) * sizeof(*sorted));
    size_t count = 0;

    for (int kind = CHECK_LOSS; kind <= CHECK_NOTE; kind++) {
        for (size_t i = 0; i < damages->count; i++) {
            if ((int)damages->items[i].kind == kind) {
                sorted[count++] = damages->items[i];
            }
        }
    }
    free(damages->items);
    damages->items = sorted;
    damages->capacity = damages->count + 1;
}

void check_damages_remove(struct check_damages *damages,
                          bool (*is_removed)(const void *ctx, const struct check_damage *damage),
                          const void *ctx)
{
    size_t kept = 0;

    for (size_t i = 0; i < damages->count; i++) {
        if (is_removed(ctx, &damages->items[i])) {
            deinit(&damages->items[i]);
        } else {
            damages->items[kept++] = damages->items[i];
        }
    }
    damages->count = kept;
}

static bool is_missing(const void *ctx, const struct check_damage *damage)
{
    return find_same(ctx, damage) == NULL;
}

void check_damages_intersect(struct check_damages *damages, const struct check_damages *other)
{
    check_damages_remove(damages, is_missing, other);
}

void check_feature(const struct check_store *store, struct check_segment *segment,
                   const struct check_record *record, uint32_t incompat, const char *what)
{
    if (store->format_known && (store->incompat & incompat) == 0) {
        check_damage_add(&segment->damages, CHECK_REDUNDANT, segment->head->name,
                         record->posting.offset, 0, "%s, and MANIFEST lacks this feature", what);
    }
}

/* --- the result --------------------------------------------------------- */

enum {
    RANGES_MAX = 16 /* of sequence numbers in a line of text */
};

/* A session's id; "#number" if its id is lost; "#store" for the store itself. */
static struct wal_slice session_name(const struct check_model *model, uint32_t number, char *buffer,
                                     size_t size)
{
    const struct check_session *session = check_model_find(model, number);

    if (number == WAL__STORE_NUMBER) {
        return cli_slice("#store");
    }
    if (session != NULL && session->has_record) {
        return (struct wal_slice){session->record.id.data, session->record.id.size};
    }
    snprintf(buffer, size, "#%" PRIu32, number);
    return cli_slice(buffer);
}

/* The range of the lost sequence numbers that begins at a rank; returns the rank of the next one,
 * or 0: there is none. */
static size_t next_range(const struct check_damage *damage, size_t rank, uint64_t *first,
                         uint64_t *last)
{
    if (damage->sequence_count == 0) {
        *first = damage->first_sequence;
        *last = damage->last_sequence;
        return damage->last_sequence == 0 || rank > 0 ? 0 : 1;
    }
    if (rank == damage->sequence_count) {
        return 0;
    }
    *first = damage->sequences[rank];
    *last = *first;
    for (rank++; rank < damage->sequence_count && damage->sequences[rank] == *last + 1; rank++) {
        *last = damage->sequences[rank];
    }
    return rank;
}

static void put_ranges(struct wal__json_out *json, const struct check_damage *damage)
{
    uint64_t first;
    uint64_t last;

    wal__json_out_open(json, '[');
    for (size_t rank = 0; (rank = next_range(damage, rank, &first, &last)) != 0;) {
        wal__json_out_open(json, '[');
        wal__json_out_count(json, first);
        wal__json_out_count(json, last);
        wal__json_out_close(json, ']');
    }
    wal__json_out_close(json, ']');
}

void check_report_damage(struct wal__json_out *json, const struct check_model *model,
                         const struct check_damage *damage)
{
    char buffer[16];

    wal__json_out_open(json, '{');
    cli_json_member_text(json, "file", cli_slice(damage->file));
    wal__json_out_member_count(json, "offset", damage->offset);
    wal__json_out_member_count(json, "length", damage->length);
    wal__json_out_member_count(json, "firstSequence", damage->first_sequence);
    wal__json_out_member_count(json, "lastSequence", damage->last_sequence);
    wal__json_out_key(json, "sequences");
    put_ranges(json, damage);
    wal__json_out_member_open(json, "sessions", '[');
    for (size_t i = 0; i < damage->session_count; i++) {
        cli_json_text(json, session_name(model, damage->sessions[i], buffer, sizeof(buffer)));
    }
    wal__json_out_close(json, ']');
    wal__json_out_member_bool(json, "redundant", damage->kind != CHECK_LOSS);
    cli_json_member_text(json, "reason", cli_slice(damage->reason));
    wal__json_out_close(json, '}');
}

static const char *tail_name(enum wal__verdict verdict)
{
    switch (verdict) {
    case WAL__VERDICT_CLEAN:
        return "clean";
    case WAL__VERDICT_TORN:
        return "torn";
    case WAL__VERDICT_AMBIGUOUS:
        return "ambiguous";
    case WAL__VERDICT_DAMAGED:
    case WAL__VERDICT_READ_ERROR:
    case WAL__VERDICT_NEWER:
    case WAL__VERDICT_STOPPED:
        break;
    }
    return "damaged";
}

static void put_tail(struct wal__json_out *json, const struct check_tail *tail)
{
    wal__json_out_open(json, '{');
    cli_json_member_text(json, "state", cli_slice(tail_name(tail->verdict)));
    cli_json_member_text_or_null(json, "file", cli_slice(tail->file));
    wal__json_out_member_count(json, "offset", tail->offset);
    wal__json_out_member_count(json, "length", tail->length);
    wal__json_out_close(json, '}');
}

/* Writes an array of the notes, or of everything else. */
static void put_damages(struct wal__json_out *json, const struct check_store *store,
                        const char *key, bool notes)
{
    wal__json_out_member_open(json, key, '[');
    for (size_t i = 0; i < store->damages.count; i++) {
        const struct check_damage *damage = &store->damages.items[i];

        if ((damage->kind == CHECK_NOTE) == notes) {
            check_report_damage(json, &store->model, damage);
        }
    }
    wal__json_out_close(json, ']');
}

static void report_json(const struct check_store *store, bool sound)
{
    struct wal__json_out json;

    cli_json_begin(&json);
    wal__json_out_member_bool(&json, "sound", sound);
    wal__json_out_member_bool(&json, "contentsChecked", !store->is_locked);
    wal__json_out_member_bool(&json, "tailAmbiguous",
                              store->tail.verdict == WAL__VERDICT_AMBIGUOUS);
    wal__json_out_key(&json, "tail");
    put_tail(&json, &store->tail);
    wal__json_out_key(&json, "packTail");
    put_tail(&json, &store->pack_tail);
    wal__json_out_member_count(&json, "formatVersion", store->reader.format_version);
    wal__json_out_member_count(&json, "sessionCount",
                               check_model_count_sessions(&store->model, false));
    wal__json_out_member_count(&json, "deletedCount",
                               check_model_count_sessions(&store->model, true));
    wal__json_out_member_count(&json, "recordCount", store->model.replayed_count);
    put_damages(&json, store, "damage", false);
    put_damages(&json, store, "notes", true);
    wal__json_out_close_line(&json);
}

/* Prints the lost sequence numbers, or how many more there are. */
static void print_sequences(const struct check_damage *damage)
{
    const char *before = "; sequence ";
    unsigned printed = 0;
    size_t rank = 0;
    size_t next;
    uint64_t first;
    uint64_t last;

    while ((next = next_range(damage, rank, &first, &last)) != 0) {
        if (printed == RANGES_MAX) {
            printf(" and %zu more", damage->sequence_count - rank);
            return;
        }
        printf("%s%" PRIu64, before, first);
        if (last > first || damage->sequence_count == 0) {
            printf(" to %" PRIu64, last);
        }
        before = ", ";
        rank = next;
        printed++;
    }
}

static void print_damage(const struct check_store *store, const struct check_damage *damage)
{
    char buffer[16];

    printf("%s%s: %" PRIu64 ", %s: ", damage->kind == CHECK_NOTE ? "note: " : "", damage->file,
           damage->offset, cli_counted(damage->length, "byte", "bytes"));
    cli_print_text(stdout, cli_slice(damage->reason), 0, false);
    print_sequences(damage);
    for (size_t i = 0; i < damage->session_count; i++) {
        fputs(i > 0 ? ", " : cli_plural(damage->session_count, "; session ", "; sessions "),
              stdout);
        cli_print_name(stdout,
                       session_name(&store->model, damage->sessions[i], buffer, sizeof(buffer)));
    }
    putchar('\n');
}

static void print_tail(const struct check_tail *tail)
{
    if (tail->verdict == WAL__VERDICT_TORN || tail->verdict == WAL__VERDICT_AMBIGUOUS) {
        printf("%s: %" PRIu64 ", %s: %s\n", tail->file, tail->offset,
               cli_counted(tail->length, "byte", "bytes"), wal__verdict_text(tail->verdict));
    }
}

/* The number of sessions that damage names, each once. */
static size_t count_damaged_sessions(const struct check_store *store)
{
    struct check_damage all = {.sessions = NULL};

    for (size_t i = 0; i < store->damages.count; i++) {
        const struct check_damage *damage = &store->damages.items[i];

        for (size_t k = 0; k < damage->session_count; k++) {
            check_damage_session(&all, damage->sessions[k]);
        }
    }
    free(all.sessions);
    return all.session_count;
}

static int by_sequence(const void *a, const void *b)
{
    const struct check_damage *x = *(const struct check_damage *const *)a;
    const struct check_damage *y = *(const struct check_damage *const *)b;

    return x->first_sequence < y->first_sequence ? -1 : x->first_sequence > y->first_sequence;
}

/* The number of records of a stream that are known to be lost: several items may name the same
 * one. */
static uint64_t count_lost_records(const struct check_store *store, bool of_pack)
{
    const struct check_damages *damages = &store->damages;
    const struct check_damage **lost = cli_alloc((damages->count + 1) * sizeof(*lost));
    uint64_t counted = 0; /* up to this sequence number */
    uint64_t records = 0;
    size_t count = 0;

    for (size_t i = 0; i < damages->count; i++) {
        const struct check_damage *damage = &damages->items[i];

        if (damage->kind != CHECK_LOSS || damage->last_sequence == 0 ||
            (strncmp(damage->file, "pack/", 5) == 0) != of_pack) {
            continue;
        }
        if (damage->sequence_count > 0) {
            records += damage->sequence_count; /* of one BLOCK alone */
        } else {
            lost[count++] = damage;
        }
    }
    qsort(lost, count, sizeof(*lost), by_sequence);
    for (size_t i = 0; i < count; i++) {
        uint64_t first = lost[i]->first_sequence;

        first = first > counted ? first : counted + 1;
        if (lost[i]->last_sequence >= first) {
            records += lost[i]->last_sequence - first + 1;
            counted = lost[i]->last_sequence;
        }
    }
    free(lost);
    return records;
}

/* The last line: what was read of a sound store, what is damaged of another. */
static void print_summary(const struct check_store *store, bool sound)
{
    size_t sessions = check_model_count_sessions(&store->model, false);
    size_t records = store->model.replayed_count;
    size_t segments = store->log.count + store->pack.count;
    size_t damages = damages_count(&store->damages);
    uint64_t lost;

    if (store->is_locked) {
        printf(
            "the store is encrypted: contents were not looked into, for which a key is needed\n");
    }
    if (sound && store->is_locked) {
        printf("sound: %s\n", cli_counted(segments, "segment", "segments"));
        return;
    }
    if (sound) {
        printf("sound: %s, %s, %s\n", cli_counted(sessions, "session", "sessions"),
               cli_counted(records, "record", "records"),
               cli_counted(segments, "segment", "segments"));
        return;
    }
    lost = count_lost_records(store, false) + count_lost_records(store, true);
    printf("damaged: %s, %zu of %s, %" PRIu64 " lost %s\n", cli_counted(damages, "place", "places"),
           count_damaged_sessions(store), cli_counted(sessions, "session", "sessions"), lost,
           cli_plural(lost, "record", "records"));
}

static void report_text(const struct check_store *store, bool sound)
{
    for (size_t i = 0; i < store->damages.count; i++) {
        print_damage(store, &store->damages.items[i]);
    }
    print_tail(&store->tail);
    print_tail(&store->pack_tail);
    print_summary(store, sound);
}

int check_report(const struct check_store *store)
{
    bool sound = damages_count(&store->damages) == 0;
    int code = sound ? CLI_OK : CLI_NEGATIVE;

    if (store->cli->json) {
        report_json(store, sound);
    } else {
        report_text(store, sound);
    }
    if (store->newer) {
        code = cli_error(store->cli, CLI_FAILED, store->path,
                         "has structures of a newer format; this walcheck knows format version %d",
                         (int)WAL__FORMAT_VERSION);
    }
    return code;
}
