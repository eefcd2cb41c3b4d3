/*
 * salvage.c - --salvage: calls wal_salvage and prints what it reports, after
 * the damage that the check found, as text or as JSON.
 *
 * A report with a place in the damaged store is not printed: the check has
 * found its cause. Nothing is printed if the salvage fails.
 *
 * Threads: the main thread.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "agentwal/admin.h"
#include "tools/cli/json.h"
#include "tools/walcheck/walcheck.h"

/* A note of the report: what is missing in OUT or was changed. */
struct note {
    char *session;
    char *entry;
    char *reason;
};

struct salvage {
    const struct check_store *store;
    const char *out;
    struct progress progress;
    struct wal_salvage_result result;
    struct note *notes;
    size_t note_count;
    size_t note_capacity;
};

static char *copy_slice(struct wal_slice slice)
{
    return cli_copy_text(slice.data, (size_t)slice.size);
}

static int32_t add_note(void *ctx, const struct wal_salvage_report *report)
{
    struct salvage *salvage = ctx;

    if (report->file.size > 0) {
        return 0;
    }
    salvage->notes =
        cli_reserve(salvage->notes, salvage->note_count,
                    &salvage->note_capacity, sizeof(*salvage->notes));
    salvage->notes[salvage->note_count++] = (struct note){
        .session = copy_slice(report->session_id),
        .entry = copy_slice(report->entry_id),
        .reason = copy_slice(report->reason),
    };
    return 0;
}

static int32_t show_progress(void *ctx, uint64_t done, uint64_t total)
{
    struct salvage *salvage = ctx;

    progress_update(&salvage->progress, salvage->out, done, total, "bytes");
    return 0;
}

static void free_notes(struct salvage *salvage)
{
    for (size_t i = 0; i < salvage->note_count; i++) {
        free(salvage->notes[i].session);
        free(salvage->notes[i].entry);
        free(salvage->notes[i].reason);
    }
    free(salvage->notes);
}

static bool is_complete(const struct salvage *salvage)
{
    const struct check_damages *damages = &salvage->store->damages;

    for (size_t i = 0; i < damages->count; i++) {
        if (damages->items[i].kind == CHECK_LOSS) {
            return false;
        }
    }
    return salvage->note_count == 0;
}

/* --- report --------------------------------------------------------------- */

static void report_json(const struct salvage *salvage)
{
    const struct check_damages *damages = &salvage->store->damages;
    struct wal__json_out json;

    cli_json_init(&json, stdout);
    wal__json_out_open(&json, '{');
    cli_json_member_text(&json, "out", cli_slice(salvage->out));
    wal__json_out_member_count(&json, "sessions", salvage->result.sessions);
    wal__json_out_member_count(&json, "entries", salvage->result.entries);
    wal__json_out_member_count(&json, "documents", salvage->result.documents);
    wal__json_out_member_count(&json, "blobs", salvage->result.blobs);
    wal__json_out_member_count(&json, "leftOut",
                               salvage->result.deleted_sessions);
    wal__json_out_member_open(&json, "damage", '[');
    for (size_t i = 0; i < damages->count; i++) {
        if (damages->items[i].kind != CHECK_NOTE) {
            check_report_damage(&json, &salvage->store->model,
                                &damages->items[i]);
        }
    }
    wal__json_out_close(&json, ']');
    wal__json_out_member_open(&json, "notes", '[');
    for (size_t i = 0; i < salvage->note_count; i++) {
        const struct note *note = &salvage->notes[i];

        wal__json_out_open(&json, '{');
        cli_json_member_text_or_null(&json, "sessionId",
                                     cli_slice(note->session));
        cli_json_member_text_or_null(&json, "entryId", cli_slice(note->entry));
        cli_json_member_text(&json, "reason", cli_slice(note->reason));
        wal__json_out_close(&json, '}');
    }
    wal__json_out_close(&json, ']');
    wal__json_out_close_line(&json);
}

static void report_text(const struct salvage *salvage)
{
    const struct check_damages *damages = &salvage->store->damages;

    for (size_t i = 0; i < damages->count; i++) {
        const struct check_damage *damage = &damages->items[i];

        if (damage->kind == CHECK_LOSS) {
            printf("lost: %s: %" PRIu64 ", %" PRIu64 " %s, sequence %" PRIu64
                   " to %" PRIu64 ": ",
                   damage->file, damage->offset, damage->length,
                   cli_plural(damage->length, "byte", "bytes"),
                   damage->first_sequence, damage->last_sequence);
            cli_print_text(stdout, cli_slice(damage->reason), 0, false);
            putchar('\n');
        }
    }
    for (size_t i = 0; i < salvage->note_count; i++) {
        const struct note *note = &salvage->notes[i];

        cli_print_name(stdout, cli_slice(note->session));
        fputs(note->entry[0] == '\0' ? "" : " ", stdout);
        cli_print_name(stdout, cli_slice(note->entry));
        fputs(": ", stdout);
        cli_print_text(stdout, cli_slice(note->reason), 0, false);
        putchar('\n');
    }
    printf("%s: %" PRIu64 " %s, %" PRIu64 " %s, %" PRIu64 " document %s; ",
           salvage->out, salvage->result.sessions,
           cli_plural(salvage->result.sessions, "session", "sessions"),
           salvage->result.entries,
           cli_plural(salvage->result.entries, "entry", "entries"),
           salvage->result.documents,
           cli_plural(salvage->result.documents, "version", "versions"));
    printf("%" PRIu64 " deleted %s left out\n",
           salvage->result.deleted_sessions,
           cli_plural(salvage->result.deleted_sessions, "session", "sessions"));
}

int check_salvage(const struct check_store *store, const char *out)
{
    struct salvage salvage = {
        .store = store,
        .out = out,
        .result = WAL_INIT(wal_salvage_result),
    };
    const struct wal_salvage_options options = {
        .struct_size = sizeof(options),
        .flags =
            store->cli->force_network_fs ? (uint32_t)WAL_OPEN_NETWORK_FS : 0,
        .progress = show_progress,
        .report = add_note,
        .ctx = &salvage,
    };
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status;
    int code;

    progress_init(&salvage.progress, !store->cli->no_progress);
    status = wal_salvage(store->path, out, &options, &salvage.result, &error);
    progress_clear(&salvage.progress);
    if (status != WAL_OK) {
        code = cli_report(store->cli, out, status, &error);
        if (status != WAL_EINVAL && status != WAL_EEXISTS) {
            code = cli_worse_code(CLI_FAILED, code);
        }
    } else {
        if (store->cli->json) {
            report_json(&salvage);
        } else {
            report_text(&salvage);
        }
        code = is_complete(&salvage) ? CLI_OK : CLI_NEGATIVE;
    }
    free_notes(&salvage);
    return code;
}
