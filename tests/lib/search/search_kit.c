/*
 * search_kit.c - messages and queries (search_kit.h).
 */
#include "tests/lib/search/search_kit.h"

#include <dirent.h>
#include <sys/stat.h>

#undef wal_search_close

static void end_search(void *search)
{
    wal_search_close(search);
}

void kit_search_close(struct wal_search *search)
{
    wal_search_close(test_forget(search));
}

struct wal_search *kit_search(struct wal_store *store)
{
    struct wal_search *search = NULL;

    assert_ok(wal_search_open(store, NULL, &search, NULL));
    test_at_end(end_search, search);
    return search;
}

void kit_say(struct wal_session *session, const char *id, const char *role, const char *text)
{
    char *payload = malloc(strlen(text) + 100);
    struct wal_append_options options = WAL_INIT(wal_append_options);
    struct wal_entry entry;

    assert_non_null(payload);
    sprintf(payload, "{\"role\":\"%s\",\"content\":\"%s\"}", role, text);
    entry = kit_entry(id, NULL, payload);
    options.durability = WAL_WRITTEN;
    assert_ok(wal_append(session, &entry, 1, &options, NULL, NULL));
    free(payload);
}

struct wal_search_query kit_search_query(const char *text)
{
    struct wal_search_query query = WAL_INIT(wal_search_query);

    query.text = kit_text(text);
    return query;
}

const char *kit_query(struct wal_search *search, const struct wal_search_query *query)
{
    static char out[4096];
    struct wal_search_cursor *cursor = NULL;
    struct wal_search_hit hit = WAL_INIT(wal_search_hit);
    struct wal_error error = KIT_ERROR;
    enum wal_status status = wal_search_find(search, query, &cursor, NULL, &error);

    if (status != WAL_OK) {
        print_error("%s\n", error.text);
    }
    assert_ok(status);
    out[0] = '\0';
    while (wal_search_cursor_next(cursor, &hit, NULL) == WAL_OK) {
        size_t size = strlen(out);

        snprintf(out + size, sizeof(out) - size, "%s%.*s:%.*s", size == 0 ? "" : " ",
                 WAL_ARG(hit.session_id), hit.entry_id.size == 0 ? 1 : (int)hit.entry_id.size,
                 hit.entry_id.size == 0 ? "-" : (const char *)hit.entry_id.data);
    }
    wal_search_cursor_close(cursor);
    return out[0] == '\0' ? "none" : out;
}

const char *kit_hits(struct wal_search *search, const char *text)
{
    struct wal_search_query query = kit_search_query(text);

    return kit_query(search, &query);
}

const char *kit_hits_anew(const char *text)
{
    struct wal_store *store = kit_store();
    struct wal_search *search = kit_search(store);
    const char *hits = kit_hits(search, text);

    kit_search_close(search);
    kit_close(store);
    return hits;
}

static bool file_has(const char *path, const char *bytes)
{
    FILE *file = fopen(path, "r");
    size_t size = strlen(bytes);
    bool found = false;
    char *data;
    size_t count;

    if (file == NULL) {
        return false;
    }
    data = malloc(80u << 20);
    assert_non_null(data);
    count = fread(data, 1, 80u << 20, file);
    found = memmem(data, count, bytes, size) != NULL;
    free(data);
    fclose(file);
    return found;
}

bool kit_tree_has(const char *directory, const char *bytes)
{
    DIR *stream = opendir(directory);
    const struct dirent *entry;
    bool found = false;

    while (stream != NULL && (entry = readdir(stream)) != NULL) {
        char path[1024];
        struct stat stat_of;

        snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
        if (entry->d_name[0] == '.' || lstat(path, &stat_of) != 0) {
            continue;
        }
        if (S_ISDIR(stat_of.st_mode)) {
            found = found || kit_tree_has(path, bytes);
        } else if (file_has(path, bytes)) {
            print_message("%s has it\n", path);
            found = true;
        }
    }
    if (stream != NULL) {
        closedir(stream);
    }
    return found;
}
