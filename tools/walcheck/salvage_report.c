/*
 * salvage_report.c - the report of a salvage as text or as JSON.
 *
 * Threads: the main thread.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/json.h"
#include "tools/walcheck/salvage.h"

enum {
    REASON_SIZE = 700
};

void salvage_note(struct salvage *salvage, const char *session,
                  const char *entry, const char *reason, ...)
{
    struct salvage_note *note;
    char text[REASON_SIZE];
    va_list arguments;

    va_start(arguments, reason);
    vsnprintf(text, sizeof(text), reason, arguments);
    va_end(arguments);
    salvage->notes = cli_reserve(salvage->notes, salvage->note_count,
                                 &salvage->note_capacity, sizeof(*note));
    note = &salvage->notes[salvage->note_count++];
    *note = (struct salvage_note){
        .session = cli_copy_text(session, strlen(session)),
        .entry = cli_copy_text(entry, strlen(entry)),
        .reason = cli_copy_text(text, strlen(text)),
    };
}

void salvage_note_reparented(struct salvage *salvage, const char *session,
                             const char *entry, uint64_t lost_parent,
                             const char *parent)
{
    if (parent == NULL) {
        salvage_note(salvage, session, entry,
                     "its parent, sequence %" PRIu64
                     ", is lost; it is a root now",
                     lost_parent);
    } else {
        salvage_note(salvage, session, entry,
                     "its parent, sequence %" PRIu64
                     ", is lost; its parent is %s now",
                     lost_parent, parent);
    }
}

void salvage_notes_deinit(struct salvage *salvage)
{
    for (size_t i = 0; i < salvage->note_count; i++) {
        free(salvage->notes[i].session);
        free(salvage->notes[i].entry);
        free(salvage->notes[i].reason);
    }
    free(salvage->notes);
}

/* --- report --------------------------------------------------------------- */

static void report_json(const struct salvage *salvage, const char *out)
{
    const struct check_damages *damages = &salvage->store->damages;
    struct cli_json json;

    cli_json_init(&json, stdout);
    cli_json_open(&json, '{');
    cli_json_key(&json, "out");
    cli_json_text(&json, cli_slice(out));
    cli_json_key(&json, "sessions");
    cli_json_number(&json, salvage->sessions_written);
    cli_json_key(&json, "entries");
    cli_json_number(&json, salvage->entries_written);
    cli_json_key(&json, "documents");
    cli_json_number(&json, salvage->documents_written);
    cli_json_key(&json, "blobs");
    cli_json_number(&json, salvage->blobs_written);
    cli_json_key(&json, "leftOut");
    cli_json_number(&json, salvage->sessions_skipped);
    cli_json_key(&json, "damage");
    cli_json_open(&json, '[');
    for (size_t i = 0; i < damages->count; i++) {
        check_report_damage(&json, &salvage->store->model, &damages->items[i]);
    }
    cli_json_close(&json, ']');
    cli_json_key(&json, "notes");
    cli_json_open(&json, '[');
    for (size_t i = 0; i < salvage->note_count; i++) {
        const struct salvage_note *note = &salvage->notes[i];

        cli_json_open(&json, '{');
        cli_json_key(&json, "sessionId");
        cli_json_text_or_null(&json, cli_slice(note->session));
        cli_json_key(&json, "entryId");
        cli_json_text_or_null(&json, cli_slice(note->entry));
        cli_json_key(&json, "reason");
        cli_json_text(&json, cli_slice(note->reason));
        cli_json_close(&json, '}');
    }
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    cli_json_end_line(&json);
}

static void report_text(const struct salvage *salvage, const char *out)
{
    const struct check_damages *damages = &salvage->store->damages;

    for (size_t i = 0; i < damages->count; i++) {
        const struct check_damage *damage = &damages->items[i];

        if (!damage->is_redundant) {
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
        const struct salvage_note *note = &salvage->notes[i];

        cli_print_name(stdout, cli_slice(note->session));
        fputs(note->entry[0] == '\0' ? "" : " ", stdout);
        cli_print_name(stdout, cli_slice(note->entry));
        fputs(": ", stdout);
        cli_print_text(stdout, cli_slice(note->reason), 0, false);
        putchar('\n');
    }
    printf("%s: %" PRIu64 " %s, %" PRIu64 " %s, %" PRIu64 " document %s; ", out,
           salvage->sessions_written,
           cli_plural(salvage->sessions_written, "session", "sessions"),
           salvage->entries_written,
           cli_plural(salvage->entries_written, "entry", "entries"),
           salvage->documents_written,
           cli_plural(salvage->documents_written, "version", "versions"));
    printf("%" PRIu64 " deleted %s left out\n", salvage->sessions_skipped,
           cli_plural(salvage->sessions_skipped, "session", "sessions"));
}

void salvage_report(const struct salvage *salvage, const char *out)
{
    if (salvage->store->cli->json) {
        report_json(salvage, out);
    } else {
        report_text(salvage, out);
    }
}
