/*
 * hit_json.c - hits of a search as JSON (hit_json.h).
 */
#include "tools/search/hit_json.h"

#include "tools/cli/cli.h"
#include "tools/shown/resume.h"

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

void search_hit_open(struct cli_json *json, const struct wal_search_hit *hit)
{
    cli_json_open(json, '{');
    cli_json_member_text_or_null(json, "entryId", hit->entry_id);
    cli_json_member_text(json, "role", cli_slice(search_role_name(hit->role)));
    cli_json_key(json, "time");
    if (hit->time_ms != 0) {
        cli_json_time(json, hit->time_ms);
    } else {
        cli_json_text_or_null(json, hit->timestamp);
    }
    cli_json_member_number(json, "sequence", hit->sequence);
    if (hit->tool.size > 0) {
        cli_json_member_text(json, "tool", hit->tool);
    }
    cli_json_member_text(json, "snippet", hit->snippet);
    cli_json_member_open(json, "matches", '[');
    for (uint32_t i = 0; i < hit->match_count; i++) {
        cli_json_open(json, '[');
        cli_json_number(json, hit->matches[2 * (size_t)i]);
        cli_json_number(json, hit->matches[2 * (size_t)i + 1]);
        cli_json_close(json, ']');
    }
    cli_json_close(json, ']');
}

void search_session_open(struct cli_json *json,
                         const struct wal_session_info *info,
                         const struct wal_search_hit *hit)
{
    char resume[SHOWN_RESUME_SIZE];

    shown_resume_text(info, resume);
    cli_json_open(json, '{');
    cli_json_member_text(json, "sessionId", hit->session_id);
    cli_json_member_text_or_null(json, "title", hit->title);
    cli_json_member_text_or_null(json, "cwd", hit->cwd);
    cli_json_member_text_or_null(json, "projectId", hit->project);
    cli_json_member_time(json, "updated", hit->session_updated_ms);
    cli_json_member_text(json, "resume", cli_slice(resume));
    cli_json_member_number(json, "matches", hit->session_hits);
    cli_json_member_open(json, "hits", '[');
}

void search_session_close(struct cli_json *json)
{
    cli_json_close(json, ']');
    cli_json_close(json, '}');
}
