/*
 * text.c - prints entries as readable text.
 *
 * Invariant: a payload reaches the terminal only as plain text.
 *
 * Threads: the tool has one thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert/source/entry_payload.h"
#include "format/json/json_scan.h"
#include "format/payload/message_text.h"
#include "tools/cli/json.h"
#include "tools/walcat/walcat.h"

struct writer {
    FILE *file;
    size_t columns; /* limit of a preview; 0: no limit, and newlines */
    size_t used;
};

/* Prints a string. */
static void put_string(struct writer *writer,
                       const struct wal__json_token *token)
{
    struct cli_texts texts = {.items = NULL};
    struct wal_slice text = cli_unescape(token, &texts);

    if (writer->columns == 0) {
        cli_print_text(writer->file, text, 0, true);
    } else if (writer->used < writer->columns) {
        writer->used += cli_print_text(writer->file, text,
                                       writer->columns - writer->used, false);
    }
    cli_texts_deinit(&texts);
}

static void put_literal(struct writer *writer, const char *text)
{
    size_t size = strlen(text);

    if (writer->columns == 0 || writer->used < writer->columns) {
        fputs(text, writer->file);
        writer->used += size;
    }
}

/* Prints a text of a tool's result. */
static void put_result_text(void *ctx, const struct wal__message_part *part)
{
    put_string(ctx, &part->text);
}

static void put_call(struct writer *writer, const struct wal__json_token *name,
                     const struct wal__json_token *arguments)
{
    struct wal_slice text = {arguments->span.data, arguments->span.size};

    put_literal(writer, "[call ");
    put_string(writer, name);
    if (arguments->kind != WAL__JSON_NONE) {
        put_literal(writer, " ");
        if (writer->columns == 0 && arguments->kind == WAL__JSON_STRING) {
            struct cli_texts texts = {.items = NULL};
            text = cli_unescape(arguments, &texts);
            cli_print_text(writer->file, text, 200, false);
            cli_texts_deinit(&texts);
        } else if (writer->columns == 0) {
            cli_print_text(writer->file, text, 200, false);
        }
    }
    put_literal(writer, "]");
}

static void put_part(void *ctx, const struct wal__message_part *part)
{
    struct writer *writer = ctx;

    switch (part->kind) {
    case WAL__PART_TEXT:
        put_string(writer, &part->text);
        break;
    case WAL__PART_THINKING:
        put_literal(writer, "[thinking] ");
        put_string(writer, &part->text);
        break;
    case WAL__PART_CALL:
        put_call(writer, &part->text, &part->value);
        break;
    case WAL__PART_RESULT:
        put_literal(writer, "[result] ");
        wal__message_visit_result(&part->value, put_result_text, writer);
        break;
    case WAL__PART_OTHER:
        if (part->text.kind == WAL__JSON_STRING) {
            put_literal(writer, "[");
            put_string(writer, &part->text);
            put_literal(writer, "]");
        }
        break;
    }
    if (writer->columns == 0 && !part->is_bare) {
        put_literal(writer, "\n");
    } else if (!part->is_bare && !part->is_whole) {
        put_literal(writer, " ");
    }
}

/* Prints "[redacted]" and the reason, if there is one. */
static void put_redaction(struct writer *writer, struct wal__json_span payload)
{
    struct wal__json_token reason;

    put_literal(writer, "[redacted]");
    if (wal__json_find(payload.data, payload.size, "reason", &reason) ==
            WAL__JSON_OK &&
        reason.kind == WAL__JSON_STRING && reason.span.size > 2) {
        put_literal(writer, " ");
        put_string(writer, &reason);
    }
}

static void put_text(const struct wal_entry *entry)
{
    struct writer writer = {.file = stdout, .columns = 0};
    struct wal__json_span object;
    struct wal__json_token note;
    struct wal__message message;
    const char *key;

    if (!cli_entry_json(entry, &object)) {
        return;
    }
    if ((entry->flags & WAL_ENTRY_REDACTED) != 0) {
        cli_print_text(stdout, entry->type, 0, false);
        printf("  ");
        cli_print_text(stdout, entry->timestamp, 0, false);
        putchar('\n');
        put_redaction(&writer, object);
        printf("\n\n");
    } else if (wal__message_find(object, &message)) {
        put_string(&writer, &message.role);
        printf("  ");
        cli_print_text(stdout, entry->timestamp, 0, false);
        putchar('\n');
        wal__message_visit(&message, put_part, &writer);
        putchar('\n');
    } else if (wal__message_find_note(object, &note, &key)) {
        putchar('[');
        cli_print_text(stdout, entry->type, 0, false);
        printf("]  ");
        cli_print_text(stdout, entry->timestamp, 0, false);
        putchar('\n');
        put_string(&writer, &note);
        printf("\n\n");
    }
}

enum wal_status walcat_print_text(struct wal_store *store,
                                  const struct wal_entry *entry,
                                  struct wal_error *error)
{
    struct wal_entry loaded = *entry;
    char *memory = NULL;
    enum wal_status status =
        wal__entry_payload_load(NULL, store, &loaded, &memory, error);

    if (status == WAL_OK) {
        put_text(&loaded);
    }
    free(memory);
    return status;
}

static void put_preview(FILE *file, const struct wal_entry *entry,
                        size_t columns)
{
    struct writer writer = {.file = file, .columns = columns};
    struct wal__json_span object;
    struct wal__json_token note;
    struct wal__message message;
    const char *key;

    if (!cli_entry_json(entry, &object)) {
        fputs("  ", file);
        cli_print_text(file, entry->payload, columns, false);
    } else if ((entry->flags & WAL_ENTRY_REDACTED) != 0) {
        fputs("  ", file);
        put_redaction(&writer, object);
    } else if (wal__message_find(object, &message)) {
        fputs("  ", file);
        put_string(&writer, &message.role);
        put_literal(&writer, ": ");
        wal__message_visit(&message, put_part, &writer);
    } else if (wal__message_find_note(object, &note, &key)) {
        fputs("  ", file);
        put_string(&writer, &note);
    }
}

void walcat_print_preview(FILE *file, struct wal_store *store,
                          const struct wal_entry *entry, size_t columns)
{
    struct wal_entry loaded = *entry;
    char *memory = NULL;

    if (wal__entry_payload_load(NULL, store, &loaded, &memory, NULL) ==
        WAL_OK) {
        put_preview(file, &loaded, columns);
    }
    free(memory);
}
