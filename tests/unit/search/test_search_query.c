/*
 * test_search_query.c - tests of what a search returns: ranking, filters, and what it must not
 * return (agentwal/search.h).
 */
#include <unistd.h>

#include "tests/lib/kit/parts_kit.h"
#include "tests/lib/search/search_kit.h"

static struct wal_session *create(struct wal_store *store, const char *id, const char *title,
                                  const char *cwd, const char *project)
{
    struct wal_session_options options = WAL_INIT(wal_session_options);
    struct wal_session *session = NULL;

    options.id = kit_text(id);
    options.title = kit_text(title);
    options.cwd = kit_text(cwd);
    options.project = kit_text(project);
    session = kit_create_with(store, &options);
    return session;
}

/* Appends an entry with a time. */
static void say_at(struct wal_session *session, const char *id, const char *time, const char *text)
{
    char payload[400];
    struct wal_entry entry;

    snprintf(payload, sizeof(payload), "{\"role\":\"user\",\"content\":\"%s\"}", text);
    entry = kit_entry(id, NULL, payload);
    entry.timestamp = kit_text(time);
    assert_ok(wal_append(session, &entry, 1, NULL, NULL, NULL));
}

static void append(struct wal_session *session, const char *id, const char *type,
                   const char *payload)
{
    struct wal_entry entry = kit_entry(id, NULL, payload);

    entry.type = kit_text(type);
    assert_ok(wal_append(session, &entry, 1, NULL, NULL, NULL));
}

KIT_TEST(query__empty_store)
{
    struct wal_store *store = kit_store();
    struct wal_search *search = kit_search(store);

    assert_string_equal(kit_hits(search, "word"), "none");
}

KIT_TEST(query__words_of_one_record)
{
    struct wal_store *store = kit_store();
    struct wal_session *a = kit_create(store, "a");
    struct wal_session *b = kit_create(store, "b");
    struct wal_search *search = kit_search(store);

    kit_say(a, "a1", "user", "The quick brown fox");
    kit_say(a, "a2", "assistant", "jumps over");
    kit_say(b, "b1", "user", "quick jumps");
    assert_string_equal(kit_hits(search, "brown"), "a:a1");
    assert_string_equal(kit_hits(search, "quick jumps"), "b:b1");
    assert_string_equal(kit_hits(search, "\"quick brown\""), "a:a1");
    assert_string_equal(kit_hits(search, "\"brown quick\""), "none");
    assert_string_equal(kit_hits(search, "jump*"), "b:b1 a:a2");
    assert_string_equal(kit_hits(search, "quick -fox"), "b:b1");
    assert_string_equal(kit_hits(search, "nothing"), "none");
    /* What was appended since is found. */
    kit_say(b, "b2", "user", "brown too");
    assert_string_equal(kit_hits(search, "brown"), "b:b2 a:a1");
}

#define ENQUEUE(text) \
    "{\"type\":\"queue-operation\",\"operation\":\"enqueue\",\"content\":\"" text "\"}"

KIT_TEST(query__text_of_a_queue_is_found_where_it_is_repeated)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_search *search = kit_search(store);
    struct wal_search_query query = kit_search_query("typed");
    struct wal_search_summary summary = WAL_INIT(wal_search_summary);
    struct wal_search_cursor *cursor = NULL;

    append(session, "q", "queue-operation", ENQUEUE("typed words"));
    append(session, "r", "queue-operation", ENQUEUE("typed and taken back"));
    assert_string_equal(kit_hits(search, "words"), "s:q");
    append(session, "a", "attachment",
           "{\"type\":\"attachment\",\"attachment\":{\"type\":\"queued_command\","
           "\"commandMode\":\"prompt\",\"prompt\":\"typed words\"}}");
    assert_string_equal(kit_hits(search, "words"), "s:a");
    assert_string_equal(kit_hits(search, "typed"), "s:a s:r");
    query.hits_limit = 1;
    assert_ok(wal_search_find(search, &query, &cursor, &summary, NULL));
    assert_int_equal(summary.matches, 2);
    wal_search_cursor_close(cursor);
}

KIT_TEST(query__grouped_and_ranked)
{
    struct wal_store *store = kit_store();
    struct wal_session *a = create(store, "a", "", "", "");
    struct wal_session *b = create(store, "b", "About invoices", "", "");
    struct wal_search *search = kit_search(store);
    struct wal_search_query query = kit_search_query("invoices");
    struct wal_search_cursor *cursor = NULL;
    struct wal_search_summary summary = WAL_INIT(wal_search_summary);
    struct wal_search_hit hit = WAL_INIT(wal_search_hit);

    say_at(b, "b1", "2026-01-01T00:00:00Z", "invoices");
    say_at(a, "a1", "2026-01-02T00:00:00Z", "invoices");
    say_at(a, "a2", "2026-01-03T00:00:00Z", "invoices invoices invoices");
    say_at(a, "a3", "2026-01-04T00:00:00Z", "other");
    /* A title counts more; more often counts more; then the newer one. */
    assert_string_equal(kit_query(search, &query), "a:a2 a:a1 b:- b:b1");
    query.hits_limit = 1;
    assert_string_equal(kit_query(search, &query), "a:a2 b:-");
    query.session_limit = 1;
    assert_string_equal(kit_query(search, &query), "a:a2");
    assert_ok(wal_search_find(search, &query, &cursor, &summary, NULL));
    assert_int_equal(summary.matches, 4);
    assert_int_equal(summary.sessions, 1);
    assert_int_equal(summary.complete, 1);
    assert_ok(wal_search_cursor_next(cursor, &hit, NULL));
    assert_int_equal(hit.role, WAL_SEARCH_USER);
    assert_int_equal(hit.match_count, 3);
    assert_int_equal(hit.session_hits, 2);
    assert_slice(hit.snippet, "invoices invoices invoices");
    assert_slice(hit.timestamp, "2026-01-03T00:00:00Z");
    assert_int_equal(hit.time_ms, INT64_C(1767398400000));
    assert_int_equal(wal_search_cursor_next(cursor, &hit, NULL), WAL_END);
    wal_search_cursor_close(cursor);
}

/* Made sessions with a topic each, which their first prompt names and their answers repeat; in
 * others it is mentioned, at length in one record. */
KIT_TEST(query__session_about_it_comes_first)
{
    enum { TOPICS = 40, ANSWERS = 4 };
    struct wal_store *store = kit_store();
    struct wal_session *sessions[TOPICS];
    struct wal_search *search;
    char text[200];
    char id[16];

    for (int i = 0; i < TOPICS; i++) {
        (void)snprintf(id, sizeof(id), "s%d", i);
        sessions[i] = kit_create(store, id);
        (void)snprintf(text, sizeof(text), "please add topic%d to part%d", i, i);
        kit_say(sessions[i], "first", "user", text);
    }
    for (int k = 0; k < ANSWERS; k++) {
        for (int i = 0; i < TOPICS; i++) {
            int other = (i + k + 1) % TOPICS;

            (void)snprintf(id, sizeof(id), "a%d", k);
            (void)snprintf(text, sizeof(text), "topic%d in part%d is done", i, i);
            kit_say(sessions[i], id, "assistant", text);
            (void)snprintf(id, sizeof(id), "o%d", k);
            (void)snprintf(text, sizeof(text),
                           "unlike topic%d topic%d topic%d of part%d part%d "
                           "part%d",
                           other, other, other, other, other, other);
            kit_say(sessions[i], id, "user", k == 0 ? text : "go on");
        }
    }
    search = kit_search(store);
    for (int i = 0; i < TOPICS; i++) {
        struct wal_search_query query = {.struct_size = 0};
        char expected[32];

        (void)snprintf(text, sizeof(text), "topic%d part%d", i, i);
        query = kit_search_query(text);
        query.session_limit = 1;
        query.hits_limit = 1;
        (void)snprintf(expected, sizeof(expected), "s%d:first", i);
        assert_string_equal(kit_query(search, &query), expected);
    }
    wal_search_close(search);
    for (int i = 0; i < TOPICS; i++) {
        wal_session_close(sessions[i]);
    }
}

/* The index has the words of a record without their places. */
KIT_TEST(query__phrases_are_compared)
{
    struct wal_store *store = kit_store();
    struct wal_session *a = create(store, "a", "", "", "");
    struct wal_search *search = kit_search(store);

    say_at(a, "a1", "2026-01-01T00:00:00Z", "the invoice is paid");
    say_at(a, "a2", "2026-01-02T00:00:00Z", "is the invoice paid");
    say_at(a, "a3", "2026-01-03T00:00:00Z", "see src/main.c");
    say_at(a, "a4", "2026-01-04T00:00:00Z", "main, not c but src");
    assert_string_equal(kit_hits(search, "\"invoice is\""), "a:a1");
    assert_string_equal(kit_hits(search, "\"invoice pa\"*"), "a:a2");
    assert_string_equal(kit_hits(search, "invoice -\"is paid\""), "a:a2");
    assert_string_equal(kit_hits(search, "invoice -\"is the\" -paid"), "none");
    assert_string_equal(kit_hits(search, "invoice -\"paid the\""), "a:a2 a:a1");
    assert_string_equal(kit_hits(search, "src/main.c"), "a:a3");
    assert_string_equal(kit_hits(search, "src -src/main.c"), "a:a4");
}

/* The matches of the first session of a query. */
static uint64_t session_hits(struct wal_search *search, const struct wal_search_query *query)
{
    struct wal_search_summary summary = WAL_INIT(wal_search_summary);
    struct wal_search_cursor *cursor = NULL;
    struct wal_search_hit hit = WAL_INIT(wal_search_hit);
    uint64_t hits;

    assert_ok(wal_search_find(search, query, &cursor, &summary, NULL));
    assert_ok(wal_search_cursor_next(cursor, &hit, NULL));
    hits = hit.session_hits;
    assert_int_equal(summary.matches, hits);
    wal_search_cursor_close(cursor);
    return hits;
}

/* The number of matches has neither what may not be shown nor what only has the words of a phrase,
 * also of a session with more hits than are returned. */
KIT_TEST(query__matches_are_those_that_are_found)
{
    struct wal_store *store = kit_store();
    struct wal_session *a = create(store, "a", "", "", "");
    struct wal_search *search = kit_search(store);
    struct wal_search_query query = kit_search_query("secret");

    say_at(a, "a1", "2026-01-01T00:00:00Z", "a secret plan");
    say_at(a, "a2", "2026-01-02T00:00:00Z", "the plan is secret");
    say_at(a, "a3", "2026-01-03T00:00:00Z", "one secret plan more");
    say_at(a, "a4", "2026-01-04T00:00:00Z", "secret plan");
    query.hits_limit = 1;
    assert_int_equal(session_hits(search, &query), 4);
    assert_ok(wal_session_redact(a, kit_text("a1"), kit_text(""), NULL, NULL));
    assert_int_equal(session_hits(search, &query), 3);
    query.text = kit_text("\"secret plan\"");
    assert_int_equal(session_hits(search, &query), 2);
}

KIT_TEST(query__filters)
{
    struct wal_store *store = kit_store();
    struct wal_session *a = create(store, "a", "", "/x", "p");
    struct wal_session *b = create(store, "b", "", "/y", "p");
    struct wal_session *c = create(store, "c", "", "/y", "q");
    struct wal_search *search = kit_search(store);
    struct wal_search_query query = kit_search_query("word");

    say_at(a, "a1", "2026-01-01T00:00:00Z", "word");
    say_at(b, "b1", "2026-01-02T00:00:00Z", "word");
    say_at(c, "c1", "2026-01-03T00:00:00Z", "word");
    query.project = kit_text("p");
    assert_string_equal(kit_query(search, &query), "b:b1 a:a1");
    query.cwd = kit_text("/y");
    assert_string_equal(kit_query(search, &query), "b:b1");
    query.project = kit_text("none");
    assert_string_equal(kit_query(search, &query), "none");
    query = kit_search_query("word");
    query.session = kit_text("c");
    assert_string_equal(kit_query(search, &query), "c:c1");
    query = kit_search_query("word");
    query.since_ms = INT64_C(1767312000000); /* 2026-01-02 */
    assert_string_equal(kit_query(search, &query), "c:c1 b:b1");
    query.until_ms = INT64_C(1767398400000); /* 2026-01-03 */
    assert_string_equal(kit_query(search, &query), "b:b1");
}

KIT_TEST(query__roles_tools_and_results)
{
    struct wal_store *store = kit_store();
    struct wal_session *a = create(store, "a", "needle title", "", "");
    struct wal_search *search = kit_search(store);
    struct wal_search_query query = kit_search_query("needle");

    kit_say(a, "user", "user", "needle");
    append(a, "call", "message",
           "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":"
           "\"I read\"},{\"type\":\"toolCall\",\"id\":\"1\",\"name\":\"Read\","
           "\"arguments\":{\"file_path\":\"/src/needle.c\",\"limit\":3}}]}");
    kit_say(a, "result", "tool", "needle in a result");
    append(a, "summary", "compaction_summary",
           "{\"summary\":\"needle was sought\",\"firstKeptEntryId\":\"user\"}");
    kit_say(a, "system", "system", "needle rules");
    query.hits_limit = 10;
    assert_string_equal(kit_query(search, &query), "a:- a:summary a:user a:call");
    query.roles = WAL_SEARCH_TOOL;
    assert_string_equal(kit_query(search, &query), "a:call");
    query.roles = WAL_SEARCH_TITLE | WAL_SEARCH_SUMMARY;
    assert_string_equal(kit_query(search, &query), "a:- a:summary");
    query.roles = WAL_SEARCH_RESULT;
    assert_string_equal(kit_query(search, &query), "a:result");
    query.roles = 0;
    query.flags = WAL_SEARCH_DEEP;
    assert_string_equal(kit_query(search, &query), "a:- a:summary a:user a:call a:result");
    query.flags = 0;
    query.tool = kit_text("read");
    assert_string_equal(kit_query(search, &query), "a:call");
    query.text = kit_text("");
    assert_string_equal(kit_query(search, &query), "a:call");
    query.tool = kit_text("needle"); /* in its arguments only */
    assert_string_equal(kit_query(search, &query), "none");
}

KIT_TEST(query__what_is_not_indexed)
{
    struct wal_store *store = kit_store();
    struct wal_session *a = kit_create(store, "a");
    struct wal_search *search = kit_search(store);

    append(a, "e1", "message",
           "{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\","
           "\"thinking\":\"needle\",\"signature\":\"needle\"},{\"type\":"
           "\"image\",\"data\":\"needle\",\"mimeType\":\"image/png\"}]}");
    kit_say(a, "e2", "user", "<system-reminder> needle");
    append(a, "e3", "message", "{\"role\":\"user\",\"isMeta\":true,\"content\":\"needle\"}");
    append(a, "e4", "message_delta_batch", "{\"text\":\"needle\"}");
    append(a, "e5", "custom", "{\"text\":\"needle\"}");
    append(a, "e6", "message", "[\"needle\"]");
    append(a, "e7", "message", "\"needle\"");
    assert_string_equal(kit_hits(search, "needle"), "none");
}

/* --- what must not be found ---------------------------------------------- */

KIT_TEST(query__redacted_entry)
{
    struct wal_store *store = kit_store();
    struct wal_session *a = kit_create(store, "a");
    struct wal_search *search = kit_search(store);
    struct wal_search_query query = kit_search_query("secret");

    kit_say(a, "a1", "user", "my secret");
    kit_say(a, "a2", "user", "no secret");
    assert_string_equal(kit_hits(search, "secret"), "a:a2 a:a1");
    assert_ok(wal_session_redact(a, kit_text("a1"), kit_text(""), NULL, NULL));
    /* With the index of before. */
    query.flags = WAL_SEARCH_NO_UPDATE;
    assert_string_equal(kit_query(search, &query), "a:a2");
    assert_string_equal(kit_hits(search, "secret"), "a:a2");
    query.flags = WAL_SEARCH_NO_UPDATE | WAL_SEARCH_SUBSTRING;
    assert_string_equal(kit_query(search, &query), "a:a2");
    wal_search_close(search);
    wal_session_close(a);
    kit_close(store);
    assert_string_equal(kit_hits_anew("secret"), "a:a2");
}

/* The index was made before the redaction, while there was one, or in a segment that has ended. */
KIT_TEST(query__restored_entry)
{
    struct wal_store *store = kit_store();
    struct wal_session *a = kit_create(store, "a");
    struct wal_search *search = kit_search(store);

    kit_say(a, "a1", "user", "my secret");
    kit_say(a, "a2", "user", "no secret");
    assert_string_equal(kit_hits(search, "secret"), "a:a2 a:a1");
    for (int i = 0; i < 3; i++) {
        kit_redact(a, "a1");
        kit_say(a, NULL, "user", "another");
        assert_string_equal(kit_hits(search, "secret"), "a:a2");
        assert_string_equal(kit_hits_anew("secret"), "a:a2");
        if (i == 2) {
            kit_compact(store, 0);
            assert_string_equal(kit_hits(search, "secret"), "a:a2");
        }
        assert_ok(wal_session_unredact(a, kit_text("a1"), NULL));
        assert_string_equal(kit_hits(search, "secret"), "a:a2 a:a1");
    }
    wal_search_close(search);
    wal_session_close(a);
    kit_close(store);
    assert_string_equal(kit_hits_anew("secret"), "a:a2 a:a1");
}

KIT_TEST(query__deleted_and_trashed_sessions)
{
    struct wal_store *store = kit_store();
    struct wal_session *a = create(store, "a", "word", "", "");
    struct wal_session *b;
    struct wal_search *search = kit_search(store);

    (void)usleep(2000); /* b is newer, by a millisecond at least */
    b = create(store, "b", "word", "", "");
    kit_say(a, "a1", "user", "word");
    kit_say(b, "b1", "user", "word");
    assert_string_equal(kit_hits(search, "word"), "b:- b:b1 a:- a:a1");
    assert_ok(wal_session_trash(a, NULL));
    assert_string_equal(kit_hits(search, "word"), "b:- b:b1");
    assert_ok(wal_session_undelete(store, kit_text("a"), NULL));
    assert_string_equal(kit_hits(search, "word"), "b:- b:b1 a:- a:a1");
    assert_ok(wal_session_delete(a, NULL));
    assert_string_equal(kit_hits(search, "word"), "b:- b:b1");
    wal_session_close(a);
    /* Another session with its id has nothing of it. */
    a = create(store, "a", "", "", "");
    assert_string_equal(kit_hits(search, "word"), "b:- b:b1");
}

KIT_TEST(query__what_a_fork_sees_of_a_deleted_session)
{
    struct wal_store *store = kit_store();
    struct wal_session *a = create(store, "a", "word", "/a", "");
    struct wal_session *fork;
    struct wal_search *search = kit_search(store);
    struct wal_search_query query = kit_search_query("word");

    kit_say(a, "a1", "user", "word");
    fork = kit_fork(a, NULL, "f");
    kit_say(a, "a2", "user", "word");
    /* While it is there, its entries are shown once; the fork has its title. */
    assert_string_equal(kit_hits(search, "word"), "a:- a:a2 a:a1 f:-");
    query.session = kit_text("f");
    assert_string_equal(kit_query(search, &query), "f:- f:a1");
    assert_ok(wal_session_delete(a, NULL));
    assert_string_equal(kit_hits(search, "word"), "f:- f:a1");
    query = kit_search_query("word");
    query.cwd = kit_text("/a");
    assert_string_equal(kit_query(search, &query), "f:- f:a1");
    query.cwd = kit_text("/b");
    assert_string_equal(kit_query(search, &query), "none");
    kit_compact(store, WAL_STORE_COMPACT_ERASE);
    assert_string_equal(kit_hits(search, "word"), "f:- f:a1");
    assert_ok(wal_session_delete(fork, NULL));
    assert_string_equal(kit_hits(search, "word"), "none");
}

KIT_TEST(query__older_titles_and_documents)
{
    struct wal_store *store = kit_store();
    struct wal_session *a = create(store, "a", "first words", "", "");
    struct wal_search *search = kit_search(store);
    static const char key[] = "x.json";

    (void)kit_put(store, a, key, "{\"role\":\"user\",\"content\":\"old text\",\"id\":\"m\"}");
    assert_string_equal(kit_hits(search, "first"), "a:-");
    assert_string_equal(kit_hits(search, "old"), "a:m");
    assert_ok(wal_session_update(a, kit_set_title, "second words", NULL));
    (void)kit_put(store, a, key, "{\"role\":\"user\",\"content\":\"new text\",\"id\":\"m\"}");
    assert_string_equal(kit_hits(search, "first"), "none");
    assert_string_equal(kit_hits(search, "words"), "a:-");
    assert_string_equal(kit_hits(search, "old"), "none");
    assert_string_equal(kit_hits(search, "new"), "a:m");
    assert_string_equal(kit_hits(search, "text"), "a:m");
}

/* --- texts --------------------------------------------------------------- */

KIT_TEST(query__scripts_without_spaces)
{
    struct wal_store *store = kit_store();
    struct wal_session *a = kit_create(store, "a");
    struct wal_search *search = kit_search(store);

    kit_say(a, "ja", "user", "全文検索の機能を追加");
    kit_say(a, "ko", "user", "전문검색을 추가했다");
    kit_say(a, "mix", "user", "SQLiteで検索");
    assert_string_equal(kit_hits(search, "検索"), "a:mix a:ja");
    assert_string_equal(kit_hits(search, "文検索"), "a:ja");
    assert_string_equal(kit_hits(search, "索検"), "none");
    assert_string_equal(kit_hits(search, "検"), "a:mix a:ja");
    assert_string_equal(kit_hits(search, "加"), "a:ja");
    assert_string_equal(kit_hits(search, "검색"), "a:ko");
    assert_string_equal(kit_hits(search, "sqliteで検索"), "a:mix");
}

/* Letters whose marks unicode61 keeps, and symbols that it takes for letters. */
KIT_TEST(query__marks_and_symbols)
{
    struct wal_store *store = kit_store();
    struct wal_session *a = kit_create(store, "a");
    struct wal_search *search = kit_search(store);
    struct wal_search_query query = kit_search_query("\U0001f916");

    kit_say(a, "el", "user", "στην Αθήνα, ἀρχὴ και ΫΛΗ");
    kit_say(a, "ru", "user", "новогодняя ёлка, мой дом");
    kit_say(a, "de", "user", "die Straße");
    kit_say(a, "sy", "user", "\U0001f916robot \U0001f9eatests \U0001f44d\U0001f3fdok");
    assert_string_equal(kit_hits(search, "ΑΘΗΝΑ"), "a:el");
    assert_string_equal(kit_hits(search, "αθηνα"), "a:el");
    assert_string_equal(kit_hits(search, "αρχη υλη"), "a:el");
    assert_string_equal(kit_hits(search, "елка"), "a:ru");
    assert_string_equal(kit_hits(search, "ЁЛКА"), "a:ru");
    assert_string_equal(kit_hits(search, "мои"), "none");
    assert_string_equal(kit_hits(search, "strasse"), "a:de");
    assert_string_equal(kit_hits(search, "STRAẞE"), "a:de");
    assert_string_equal(kit_hits(search, "robot tests ok"), "a:sy");
    assert_string_equal(kit_hits(search, "\U0001f916"), "a:sy");
    assert_string_equal(kit_hits(search, "\U0001f44d"), "a:sy");
    assert_string_equal(kit_hits(search, "\U0001f680"), "none");
    query.flags = WAL_SEARCH_SUBSTRING;
    assert_string_equal(kit_query(search, &query), "a:sy");
}

KIT_TEST(query__inside_words)
{
    struct wal_store *store = kit_store();
    struct wal_session *a = kit_create(store, "a");
    struct wal_search *search = kit_search(store);
    struct wal_search_query query = kit_search_query("segmentc");
    struct wal_search_cursor *cursor = NULL;

    kit_say(a, "a1", "user", "call wal_SegmentCursor_open(store) now");
    kit_say(a, "a2", "user", "segment cursor");
    query.flags = WAL_SEARCH_SUBSTRING;
    assert_string_equal(kit_query(search, &query), "a:a1");
    query.text = kit_text("r_open(sto");
    assert_string_equal(kit_query(search, &query), "a:a1");
    query.text = kit_text("nt cur");
    assert_string_equal(kit_query(search, &query), "a:a2");
    query.text = kit_text("-segment");
    assert_string_equal(kit_query(search, &query), "none");
    query.text = kit_text("a(");
    assert_int_equal(wal_search_find(search, &query, &cursor, NULL, NULL), WAL_EINVAL);
    query.text = kit_text("(((");
    assert_int_equal(wal_search_find(search, &query, &cursor, NULL, NULL), WAL_EINVAL);
}

KIT_TEST(query__long_text_is_found_to_its_end)
{
    struct wal_store *store = kit_store();
    struct wal_session *a = kit_create(store, "a");
    struct wal_search *search = kit_search(store);
    static const size_t sizes[] = {400000, 20000000}; /* kept as blobs */

    for (size_t i = 0; i < 2; i++) {
        char *text = malloc(sizes[i] + 1);

        assert_non_null(text);
        memset(text, ' ', sizes[i]);
        text[sizes[i]] = '\0';
        memcpy(text, "begin", 5);
        memcpy(text + 70000, i == 0 ? "beyond" : "ensues", 6);
        memcpy(text + sizes[i] - 5, i == 0 ? "first" : "other", 5);
        kit_say(a, i == 0 ? "a1" : "a2", "user", text);
        free(text);
    }
    assert_string_equal(kit_hits(search, "begin beyond first"), "a:a1");
    assert_string_equal(kit_hits(search, "\"ensues other\" begin"), "a:a2");
}

/* --- handles -------------------------------------------------------------- */

KIT_TEST(query__more_than_are_ranked)
{
    struct wal_store *store = kit_open(NULL, WAL_OPEN_MEMORY);
    struct wal_session *a = kit_create(store, "a");
    struct wal_search *search = kit_search(store);
    struct wal_search_query query = kit_search_query("word");
    struct wal_search_summary summary = WAL_INIT(wal_search_summary);
    struct wal_search_cursor *cursor = NULL;
    struct wal_append_options options = WAL_INIT(wal_append_options);
    struct wal_entry entries[1024];

    options.durability = WAL_WRITTEN;
    for (int batch = 0; batch < 20; batch++) {
        for (int i = 0; i < 1024; i++) {
            entries[i] = kit_entry("", NULL, "{\"role\":\"user\",\"content\":\"word\"}");
            entries[i].id.data = NULL;
        }
        assert_ok(wal_append(a, entries, 1024, &options, NULL, NULL));
    }
    assert_ok(wal_search_find(search, &query, &cursor, &summary, NULL));
    assert_int_equal(summary.complete, 0);
    assert_int_equal(summary.hits, 3);
    wal_search_close(search); /* the cursor outlives it, and the store */
    wal_search_cursor_close(cursor);
}

KIT_TEST(query__misuse)
{
    struct wal_store *store = kit_store();
    struct wal_search *search = kit_search(store);
    struct wal_search_query query = kit_search_query("word");
    struct wal_search_cursor *cursor = NULL;
    struct wal_search_options options = WAL_INIT(wal_search_options);
    struct wal_search_hit hit = WAL_INIT(wal_search_hit);
    struct wal_search *other = NULL;
    char many[2 * 65]; /* words of a phrase */

    assert_int_equal(wal_search_open(NULL, NULL, &other, NULL), WAL_EINVAL);
    assert_int_equal(wal_search_open(store, NULL, NULL, NULL), WAL_EINVAL);
    options.flags = 2;
    assert_int_equal(wal_search_open(store, &options, &other, NULL), WAL_EINVAL);
    assert_int_equal(wal_search_find(NULL, &query, &cursor, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_search_find(search, NULL, &cursor, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_search_find(search, &query, NULL, NULL, NULL), WAL_EINVAL);
    query.flags = 64;
    assert_int_equal(wal_search_find(search, &query, &cursor, NULL, NULL), WAL_EINVAL);
    query = kit_search_query("");
    assert_int_equal(wal_search_find(search, &query, &cursor, NULL, NULL), WAL_EINVAL);
    query = kit_search_query("word");
    query.session = kit_text("none");
    assert_int_equal(wal_search_find(search, &query, &cursor, NULL, NULL), WAL_ENOTFOUND);
    memset(many, 'a', sizeof(many));
    for (size_t i = 1; i < sizeof(many); i += 2) {
        many[i] = '.';
    }
    query = kit_search_query("");
    query.text = (struct wal_slice){many, sizeof(many)};
    assert_int_equal(wal_search_find(search, &query, &cursor, NULL, NULL), WAL_EINVAL);
    query.text.size = sizeof(many) - 2;
    assert_ok(wal_search_find(search, &query, &cursor, NULL, NULL));
    wal_search_cursor_close(cursor);
    cursor = NULL;
    query.text.size = 5000;
    assert_int_equal(wal_search_find(search, &query, &cursor, NULL, NULL), WAL_EINVAL);
    assert_null(cursor);
    assert_int_equal(wal_search_cursor_next(NULL, &hit, NULL), WAL_EINVAL);
    assert_int_equal(wal_search_update(NULL, NULL, NULL, NULL), WAL_EINVAL);
    wal_search_cursor_close(NULL);
    wal_search_close(NULL);
}

/* It has opened a session, for the roles of messages. */
KIT_TEST(query__search_closed_after_its_store)
{
    struct wal_store *store = kit_store();
    struct wal_session *a = kit_create(store, "a");
    struct wal_search *search = kit_search(store);

    (void)kit_put(store, a, "message/a/m.json",
                  "{\"id\":\"m\",\"role\":\"user\",\"time\":{\"created\":1}}");
    (void)kit_put(store, a, "part/m/p.json",
                  "{\"id\":\"p\",\"messageID\":\"m\",\"sessionID\":\"a\","
                  "\"type\":\"text\",\"text\":\"needle\"}");
    assert_string_equal(kit_hits(search, "needle"), "a:m");
    wal_session_close(a);
    assert_int_equal(wal_close(store, NULL), WAL_EBUSY);
}
