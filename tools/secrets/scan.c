/*
 * scan.c - finds secrets in the records of a store, and redacts the entries that have them
 * (secrets.h).
 *
 * The log is read segment by segment, each record once, whichever sessions see it. What was
 * redacted is not read; neither are deltas, documents of the store, and files of checkpoints.
 *
 * Invariant: of a secret only its mask is kept.
 */
#include "tools/secrets/secrets.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agentwal/record.h"
#include "tools/cli/session.h"
#include "tools/cli/table.h"

enum {
    PAYLOAD_MAX = 1 << 30 /* bytes of an entry that is read into memory */
};

/* --- a record ----------------------------------------------------------------- */

static void add_hit(struct secrets_scan *scan, const struct secrets_rule *rule,
                    struct wal_slice secret)
{
    const struct wal_record *record = scan->record;
    struct secrets_hit *last = scan->count > 0 ? &scan->items[scan->count - 1] : NULL;
    struct secrets_hit hit = {.rule = rule,
                              .sequence = record->sequence,
                              .kind = record->kind,
                              .is_deleted =
                                  (record->flags & (WAL_RECORD_DELETED | WAL_RECORD_TRASHED)) != 0};

    scan->possible += rule == NULL ? 1 : 0;
    if (rule == NULL && !scan->keeps_possible) {
        return;
    }
    secrets_mask(secret, hit.mask);
    if (last != NULL && last->sequence == hit.sequence && last->rule == rule &&
        strcmp(last->mask, hit.mask) == 0) {
        return; /* again in the same record */
    }
    hit.session = cli_copy_slice(record->session_id);
    hit.place = cli_copy_slice(record->kind == WAL_RECORD_ENTRY ? record->entry->id
                               : record->kind == WAL_RECORD_DOC ? record->doc->key
                                                                : cli_slice(NULL));
    *CLI_ADD(scan) = hit;
}

static void scan_text(void *ctx, const struct wal__json_token *token, struct wal_slice key,
                      struct wal_slice text)
{
    struct secrets_scan *scan = ctx;
    const struct secrets_rule *rule = secrets_find_member(scan->secrets, key, text);
    const char *data = text.data;
    struct secrets_found found;
    size_t at = 0;

    (void)token;
    if (rule != NULL) {
        add_hit(scan, rule, text);
        return;
    }
    while (secrets_find(scan->secrets, text, at, &found)) {
        add_hit(scan, found.rule, (struct wal_slice){data + found.from, found.end - found.from});
        at = found.end;
    }
    for (at = at > 0 ? (size_t)text.size : 0; secrets_find_possible(text, at, &found);
         at = found.end) {
        add_hit(scan, NULL, (struct wal_slice){data + found.from, found.end - found.from});
    }
}

static void scan_json(struct secrets_scan *scan, struct wal_slice json)
{
    size_t count = scan->count;

    scan->bytes += json.size;
    if (json.size > 0 && !secrets_visit(json, scan_text, scan) && scan->count == count) {
        scan_text(scan, NULL, cli_slice(NULL), json);
    }
}

static void scan_record(struct secrets_scan *scan, const struct wal_record *record)
{
    scan->record = record;
    if (record->kind == WAL_RECORD_ENTRY) {
        scan_json(scan, record->entry->payload);
        scan_json(scan, record->entry->meta);
    } else if (record->kind == WAL_RECORD_DOC) {
        scan_json(scan, record->doc->value);
    }
    if (record->kind == WAL_RECORD_SESSION || scan->after_sequence > 0) {
        (void)cli_ids_get_or_add(&scan->sessions, record->session_id);
    }
}

/* Looks at the titles and metadata that sessions have now, of those with records that were read:
 * what they had before is shown to nobody. */
static enum wal_status scan_sessions(struct secrets_scan *scan, struct wal_store *store,
                                     struct wal_error *error)
{
    struct cli_sessions list;

    for (cli_sessions_open(&list, store, NULL, error); cli_sessions_next(&list);) {
        const struct wal_record record = {.kind = WAL_RECORD_SESSION,
                                          .session_id = list.info.id,
                                          .sequence = list.info.last_sequence};

        if (cli_ids_find(&scan->sessions, list.info.id) != NULL) {
            scan->record = &record;
            scan_text(scan, NULL, cli_slice(NULL), list.info.title);
            scan_json(scan, list.info.metadata);
        }
    }
    return list.status;
}

/* --- the log ---------------------------------------------------------------------- */

static enum wal_status scan_segment(struct secrets_scan *scan, struct wal_store *store,
                                    const struct wal_segment_info *segment, struct wal_error *error)
{
    struct wal_record_cursor_options options = WAL_INIT(wal_record_cursor_options);
    struct wal_record record = WAL_INIT(wal_record);
    struct wal_record_cursor *cursor = NULL;
    enum wal_status status;

    options.flags = WAL_RECORD_CURSOR_DELETED;
    options.segment = segment->id;
    options.identity = segment->identity;
    options.after_sequence = scan->after_sequence;
    options.payload_limit = PAYLOAD_MAX;
    status = wal_record_cursor_open(store, &options, &cursor, error);
    while (status == WAL_OK) {
        status = wal_record_cursor_next(cursor, &record, error);
        if (status == WAL_ECORRUPT || status == WAL_EIO) {
            scan->damaged++;
            status = WAL_OK;
            continue;
        }
        if (status == WAL_OK && record.kind == WAL_RECORD_ENTRY &&
            (record.entry->flags & WAL_ENTRY_OUT_OF_LINE) != 0) {
            scan->damaged++; /* too large */
        } else if (status == WAL_OK &&
                   (scan->only == NULL || cli_ids_find(scan->only, record.session_id) != NULL)) {
            scan_record(scan, &record);
        }
    }
    wal_record_cursor_close(cursor);
    return status == WAL_END ? WAL_OK : status;
}

enum wal_status secrets_scan(struct secrets_scan *scan, const struct cli *cli,
                             struct wal_store *store, struct wal_error *error)
{
    struct wal_segment_info segment = WAL_INIT(wal_segment_info);
    struct wal_store_info info = WAL_INIT(wal_store_info);
    struct wal_segment_cursor *cursor = NULL;
    struct progress progress;
    uint64_t done = 0;
    enum wal_status status = wal_store_get_info(store, &info, error);

    progress_init(&progress, !cli->no_progress);
    if (status == WAL_OK) {
        status = wal_segment_cursor_open(store, &cursor, error);
    }
    while (status == WAL_OK &&
           (status = wal_segment_cursor_next(cursor, &segment, error)) == WAL_OK) {
        if (segment.last_sequence > scan->after_sequence) {
            status = scan_segment(scan, store, &segment, error);
        }
        done += segment.end;
        progress_update_sizes(&progress, "secrets", done, info.log_bytes);
    }
    progress_clear(&progress);
    wal_segment_cursor_close(cursor);
    return status == WAL_END ? scan_sessions(scan, store, error) : status;
}

void secrets_scan_deinit(struct secrets_scan *scan)
{
    for (size_t i = 0; i < scan->count; i++) {
        free(scan->items[i].session);
        free(scan->items[i].place);
    }
    free(scan->items);
    cli_ids_deinit(&scan->sessions);
    *scan = (struct secrets_scan){.items = NULL};
}

/* --- redacting -------------------------------------------------------------------- */

/* Redacts the entry in the session, or, where that was deleted, in a fork that sees it. */
static enum wal_status redact(struct wal_store *store, const struct secrets_hit *hit,
                              struct wal_error *error)
{
    struct wal_session *session = NULL;
    struct cli_sessions list;
    enum wal_status status = wal_session_open(store, cli_slice(hit->session), &session, error);

    if (status == WAL_OK) {
        status = wal_session_redact(session, cli_slice(hit->place), cli_slice(hit->rule->name),
                                    NULL, error);
        wal_session_close(session);
        return status;
    }
    for (cli_sessions_open(&list, store, NULL, error); cli_sessions_next(&list);) {
        struct wal_entry entry = WAL_INIT(wal_entry);

        if ((list.info.flags & WAL_SESSION_FORK) == 0 ||
            wal_session_open(store, list.info.id, &session, NULL) != WAL_OK) {
            continue;
        }
        if (wal_entry_get(session, cli_slice(hit->place), &entry, NULL) == WAL_OK &&
            entry.sequence == hit->sequence) {
            status = wal_session_redact(session, cli_slice(hit->place), cli_slice(hit->rule->name),
                                        NULL, error);
        }
        wal_session_close(session);
    }
    return list.status == WAL_OK ? status : list.status;
}

enum wal_status secrets_scan_redact(struct secrets_scan *scan, struct wal_store *store,
                                    struct wal_error *error)
{
    for (size_t i = 0; i < scan->count; i++) {
        struct secrets_hit *hit = &scan->items[i];
        enum wal_status status;

        if (hit->rule == NULL || hit->kind != WAL_RECORD_ENTRY) {
            scan->left += hit->rule != NULL ? 1 : 0;
            continue;
        }
        if (i > 0 && hit[-1].is_redacted && hit[-1].sequence == hit->sequence) {
            hit->is_redacted = true;
            continue;
        }
        status = redact(store, hit, error);
        if (status == WAL_ENOTFOUND || status == WAL_ETRASHED) {
            scan->left++; /* of a deleted session */
        } else if (status != WAL_OK && status != WAL_EREDACTED) {
            return status;
        } else {
            hit->is_redacted = true;
            scan->redacted++;
        }
    }
    return WAL_OK;
}

/* --- printing ---------------------------------------------------------------------- */

static void write_hit(const struct secrets_hit *hit)
{
    struct wal__json_out json;

    cli_json_begin(&json);
    cli_json_member_text(&json, "sessionId", cli_slice(hit->session));
    if (hit->place[0] != '\0') {
        cli_json_member_text(&json, hit->kind == WAL_RECORD_ENTRY ? "entryId" : "document",
                             cli_slice(hit->place));
    }
    wal__json_out_member_count(&json, "sequence", hit->sequence);
    cli_json_member_text(&json, "secret",
                         cli_slice(hit->rule != NULL ? hit->rule->name : "possible"));
    if (hit->rule != NULL) {
        cli_json_member_text_or_null(&json, "vendor", cli_slice(hit->rule->vendor));
    }
    cli_json_member_text(&json, "mask", cli_slice(hit->mask));
    wal__json_out_member_bool(&json, "deleted", hit->is_deleted);
    wal__json_out_member_bool(&json, "redacted", hit->is_redacted);
    wal__json_out_close_line(&json);
}

static void write_hits(const struct secrets_scan *scan, uint64_t secrets)
{
    const struct cli_count numbers[] = {
        {"secrets", secrets},       {"possible", scan->possible}, {"redacted", scan->redacted},
        {"damaged", scan->damaged}, {"bytes", scan->bytes},
    };
    struct wal__json_out json;

    for (size_t i = 0; i < scan->count && !cli_output_failed(); i++) {
        write_hit(&scan->items[i]);
    }
    cli_json_begin(&json);
    wal__json_out_member_open(&json, "summary", '{');
    cli_json_counts(&json, numbers, sizeof(numbers) / sizeof(numbers[0]));
    wal__json_out_close(&json, '}');
    wal__json_out_close_line(&json);
}

static void print_hits(const struct secrets_scan *scan, const struct cli *cli)
{
    struct table table;

    table_init(&table, stdout, cli->terminal,
               TABLE_COLUMNS(TABLE_ID("SESSION"), TABLE_ID("ENTRY"), TABLE_TEXT("SECRET", 0),
                             TABLE_TEXT("BEGINS", 0)));
    for (size_t i = 0; i < scan->count; i++) {
        const struct secrets_hit *hit = &scan->items[i];

        table_put(&table, hit->is_deleted ? cli_slice("(deleted)")
                                          : cli_session_short(cli->store, cli_slice(hit->session)));
        table_put(&table, cli_slice(hit->kind == WAL_RECORD_SESSION ? "(title)" : hit->place));
        table_put(&table, cli_slice(hit->rule != NULL ? hit->rule->name : "possible"));
        table_put(&table, cli_slice(hit->mask));
    }
    table_finish(&table);
}

void secrets_scan_print(const struct secrets_scan *scan, const struct cli *cli)
{
    uint64_t secrets = secrets_scan_count(scan);

    if (cli->json) {
        write_hits(scan, secrets);
        return;
    }
    print_hits(scan, cli);
    fputs(cli_counted(secrets, "secret", "secrets"), stdout);
    if (scan->redacted > 0) {
        printf(", %s redacted", cli_counted(scan->redacted, "entry", "entries"));
    }
    if (scan->possible > 0) {
        printf(", %" PRIu64 " possible", scan->possible);
    }
    if (scan->damaged > 0) {
        printf(", %s not read", cli_counted(scan->damaged, "record", "records"));
    }
    putchar('\n');
}

uint64_t secrets_scan_count(const struct secrets_scan *scan)
{
    uint64_t count = 0;

    for (size_t i = 0; i < scan->count; i++) {
        count += scan->items[i].rule != NULL ? 1 : 0;
    }
    return count;
}
