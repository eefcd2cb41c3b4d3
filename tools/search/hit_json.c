/*
 * hit_json.c - hits of a search as JSON (hit_json.h).
 */
#include "tools/search/hit_json.h"

#include "tools/shown/shown.h"

const char *search_role_name(uint32_t role)
{
    static const struct {
        uint32_t role;
        const char *name;
    } names[] = {
        {WAL_SEARCH_USER, "user"},       {WAL_SEARCH_ASSISTANT, "assistant"},
        {WAL_SEARCH_TOOL, "tool"},       {WAL_SEARCH_TITLE, "title"},
        {WAL_SEARCH_SUMMARY, "summary"}, {WAL_SEARCH_RESULT, "result"},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].role == role) {
            return names[i].name;
        }
    }
    return "";
}

void search_hit_open(struct wal__json_out *json,
                     const struct wal_search_hit *hit)
{
    wal__json_out_open(json, '{');
    cli_json_member_text_or_null(json, "entryId", hit->entry_id);
    cli_json_member_text(json, "role", cli_slice(search_role_name(hit->role)));
    wal__json_out_key(json, "time");
    if (hit->time_ms != 0) {
        cli_json_time(json, hit->time_ms);
    } else {
        cli_json_text_or_null(json, hit->timestamp);
    }
    wal__json_out_member_count(json, "sequence", hit->sequence);
    if (hit->tool.size > 0) {
        cli_json_member_text(json, "tool", hit->tool);
    }
    cli_json_member_text(json, "snippet", hit->snippet);
    wal__json_out_member_open(json, "matches", '[');
    for (uint32_t i = 0; i < hit->match_count; i++) {
        wal__json_out_open(json, '[');
        wal__json_out_count(json, hit->matches[2 * (size_t)i]);
        wal__json_out_count(json, hit->matches[2 * (size_t)i + 1]);
        wal__json_out_close(json, ']');
    }
    wal__json_out_close(json, ']');
}

void search_session_open(struct wal__json_out *json,
                         const struct wal_session_info *info,
                         const struct wal_search_hit *hit)
{
    char resume[SHOWN_RESUME_SIZE];

    shown_resume_text(info, resume);
    wal__json_out_open(json, '{');
    cli_json_member_text(json, "sessionId", hit->session_id);
    cli_json_member_text_or_null(json, "title", hit->title);
    cli_json_member_text_or_null(json, "cwd", hit->cwd);
    cli_json_member_text_or_null(json, "projectId", hit->project);
    cli_json_member_time(json, "updated", hit->session_updated_ms);
    cli_json_member_text(json, "resume", cli_slice(resume));
    wal__json_out_member_count(json, "matches", hit->session_hits);
    wal__json_out_member_open(json, "hits", '[');
}

void search_session_close(struct wal__json_out *json)
{
    wal__json_out_close(json, ']');
    wal__json_out_close(json, '}');
}
