/*
 * session_json.c - sessions as JSON (session_json.h).
 */
#include "tools/shown/session_json.h"

#include <stdlib.h>
#include <string.h>

#include "tools/cli/session.h"
#include "tools/shown/resume.h"

/* The name of a dialect is before the first blank of a source. */
static struct wal_slice client_of(struct wal_slice source)
{
    const char *text = source.data;
    const char *blank =
        source.size > 0 ? memchr(text, ' ', (size_t)source.size) : NULL;

    return blank == NULL ? cli_slice("agentwal")
                         : (struct wal_slice){text, (uint64_t)(blank - text)};
}

static void put_resume(struct shown *shown, const struct wal_session_info *info)
{
    char *text = cli_alloc(SHOWN_RESUME_SIZE);

    shown_resume_text(info, text);
    shown_member(shown, "resume", cli_slice(text));
    free(text);
}

void shown_session(struct shown *shown, const struct wal_session_info *info)
{
    struct wal__json_out *json = shown->json;

    wal__json_out_open(json, '{');
    cli_json_member_text(json, "id", info->id);
    wal__json_out_member_count(shown->json, "number", info->number);
    shown_member(shown, "title", info->title);
    shown_member(shown, "text", info->first_text);
    shown_member(shown, "cwd", info->cwd);
    shown_member(shown, "projectId", info->project);
    cli_json_member_text(json, "client", client_of(info->source));
    cli_json_member_text_or_null(json, "parentId", info->parent_id);
    shown_time(shown, "created", info->created_ms);
    shown_time(shown, "updated", info->updated_ms);
    wal__json_out_member_count(shown->json, "entries", info->entries);
    wal__json_out_member_count(shown->json, "bytes", info->bytes);
    wal__json_out_member_count(shown->json, "sequence", info->last_sequence);
    cli_json_member_text_or_null(json, "head", info->head);
    wal__json_out_member_bool(shown->json, "damaged",
                              (info->flags & WAL_SESSION_DAMAGED) != 0);
    put_resume(shown, info);
    wal__json_out_close(json, '}');
}

enum wal_status shown_heads(struct shown *shown, struct wal_session *session,
                            struct wal_error *error)
{
    struct cli_heads heads = {.items = NULL};
    enum wal_status status = cli_heads_read(&heads, session, error);

    if (status == WAL_OK) {
        wal__json_out_member_open(shown->json, "heads", '[');
        for (size_t i = 0; i < heads.count; i++) {
            if (heads.items[i].stream == 0) {
                wal__json_out_open(shown->json, '{');
                shown_member(shown, "name", heads.items[i].name);
                cli_json_member_text_or_null(shown->json, "entryId",
                                             heads.items[i].entry_id);
                wal__json_out_close(shown->json, '}');
            }
        }
        wal__json_out_close(shown->json, ']');
    }
    cli_heads_deinit(&heads);
    return status;
}
