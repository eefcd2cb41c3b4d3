/*
 * test_message_text.c - tests of the parts of messages: what a client wrote in a user's message,
 * slash commands, escape sequences of a terminal, what a person typed while an agent worked and
 * whether that is repeated.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/payload/message_text.h"
#include "tests/lib/test.h"

enum { TEXT_SIZE = 2048 };

static struct wal__json_span span_of(const char *text)
{
    return (struct wal__json_span){(const uint8_t *)text, strlen(text)};
}

static void add(char *text, const struct wal__message_part *part,
                const struct wal__json_token *string)
{
    uint8_t *buffer = malloc(string->span.size + 1);
    size_t used = strlen(text);

    assert_non_null(buffer);
    snprintf(text + used, TEXT_SIZE - used, "%.*s", (int)wal__message_decode(part, string, buffer),
             (char *)buffer);
    free(buffer);
}

/* Adds "KIND:TEXT|VALUE;". */
static void describe(void *ctx, const struct wal__message_part *part)
{
    static const char *const kinds[] = {"text", "note",   "command", "thinking",
                                        "call", "result", "other"};
    char *text = ctx;

    if (part->author.kind == WAL__JSON_STRING) {
        strncat(text, (const char *)part->author.span.data + 1, part->author.span.size - 2);
        strcat(text, "'s ");
    }
    strcat(text, kinds[part->kind]);
    strcat(text, ":");
    if (part->text.kind == WAL__JSON_STRING) {
        add(text, part, &part->text);
    }
    if ((part->kind == WAL__PART_COMMAND || part->kind == WAL__PART_RESULT) &&
        part->value.kind == WAL__JSON_STRING) {
        strcat(text, "|");
        add(text, part, &part->value);
    }
    strcat(text, ";");
}

/* The payload, in an allocation of its size, has these parts. */
static void check_parts(const char *payload, const char *expected)
{
    char *exact = malloc(strlen(payload));
    char text[TEXT_SIZE] = "";
    struct wal__message message;

    assert_non_null(exact);
    memcpy(exact, payload, strlen(payload));
    if (!wal__message_find((struct wal__json_span){(uint8_t *)exact, strlen(payload)}, &message)) {
        strcpy(text, "none");
    } else {
        wal__message_visit(&message, describe, text);
    }
    free(exact);
    assert_string_equal(text, expected);
}

#define USER(content) "{\"message\":{\"role\":\"user\",\"content\":" content "}}"

TEST(message_text__commands_are_shown_as_they_were_typed)
{
    check_parts(USER("\"<command-name>/exit</command-name>\\n    <command-message>exit"
                     "</command-message>\\n   <command-args></command-args>\""),
                "command:/exit;");
    check_parts(
        USER("\"<command-message>x is running</command-message>\\n"
             "<command-name>/x</command-name>\\n<command-args>a \\\"b\\\"</command-args>\""),
        "command:/x|a \"b\";");
    check_parts(USER("[{\"type\":\"text\",\"text\":\"<bash-input>ls</bash-input>\"}]"),
                "command:ls;");
    check_parts(USER("\"<command-message>only</command-message>\""), "");
}

TEST(message_text__words_of_a_client_are_notes)
{
    check_parts(USER("\"<local-command-stdout>\\u001b[2mDone\\u001B[22;1m.\\u001b[0m"
                     "</local-command-stdout>\""),
                "note:Done.;");
    check_parts(USER("\" \\n<system-reminder>a</system-reminder>\\n<system-reminder>b"
                     "</system-reminder>\\nmy words <b>\""),
                "note:a;note:b;text:my words <b>;");
    check_parts(USER("\"<bash-stdout>o</bash-stdout><bash-stderr></bash-stderr>\""),
                "note:o;note:;");
    check_parts("{\"isMeta\":true,\"message\":{\"role\":\"user\",\"content\":\"c\"}}", "note:c;");
    check_parts("{\"isMeta\":true,\"message\":{\"role\":\"user\",\"content\":[\"c\"]}}", "note:c;");
}

#define STEP(source, type, more) \
    "{\"source\":\"" source "\",\"type\":\"" type "\",\"created_at\":\"t\"," more "}"

TEST(message_text__steps_have_the_role_of_their_source)
{
    check_parts(STEP("USER_EXPLICIT", "USER_INPUT",
                     "\"content\":\"<USER_REQUEST>a <b>\\n</USER_REQUEST><ADDITIONAL_METADATA>m"
                     "</ADDITIONAL_METADATA>\""),
                "text:a <b>;note:m;");
    check_parts(STEP("USER_EXPLICIT", "USER_INPUT",
                     "\"content\":\"<USER_REQUEST>a <ADDITIONAL_METADATA>m</ADDITIONAL_METADATA>"
                     "</USER_REQUEST>\""),
                "text:a;");
    check_parts(STEP("MODEL", "PLANNER_RESPONSE",
                     "\"content\":\"a\",\"thinking\":\"t\",\"tool_calls\":[{\"name\":\"ls\","
                     "\"args\":{}}]"),
                "thinking:t;text:a;call:ls;");
    check_parts(STEP("MODEL", "CODE_ACTION", "\"content\":\"done\""), "text:done;");
    check_parts(STEP("SYSTEM", "X", "\"content\":\"c\""), "text:c;");
    check_parts(STEP("OTHER", "X", "\"content\":\"c\""), "none");
    check_parts(STEP("MODEL", "X", "\"content\":7"), "none");
    check_parts("{\"source\":\"MODEL\",\"content\":\"c\"}", "none");
}

TEST(message_text__other_tags_are_words_of_a_person)
{
    static const char *const texts[] = {
        "<b>x</b>",
        "<system-reminder>",
        "<system-reminder>a</system-remind>",
        "<",
        "</",
        "<command-name",
        "<command-name>a</command-name",
        "<command-namex>a</command-namex>",
        "say <system-reminder>a</system-reminder>",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char payload[256];
        char expected[256];

        snprintf(payload, sizeof(payload), USER("\"%s\""), texts[i]);
        snprintf(expected, sizeof(expected), "text:%s;", texts[i]);
        check_parts(payload, expected);
    }
    check_parts("{\"role\":\"assistant\",\"content\":\"<system-reminder>a</system-reminder>\"}",
                "text:<system-reminder>a</system-reminder>;");
}

#define ROW(message, more) \
    "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"parts\":[" message "]}," more "}"
#define PAYLOAD(members) "\"systemPayload\":{" members "}"
#define COMMANDS(members) \
    "{\"type\":\"system\",\"subtype\":\"slash_command\",\"systemPayload\":{" members "}}"

/* Qwen Code shows what a person typed, and not what the model got. */
TEST(message_text__row_says_what_was_shown_of_its_message)
{
    check_parts(ROW("{\"text\":\"a\"}", PAYLOAD("\"displayText\":\"typed\"")), "text:typed;");
    check_parts(ROW("{\"text\":\"a\"}", PAYLOAD("\"displayText\":\"\"")), "text:a;");
    check_parts(ROW("{\"text\":\"a\"},{\"inlineData\":{}}", PAYLOAD("\"displayText\":\"typed\"")),
                "text:a;other:;");
    check_parts(ROW("{\"text\":\"a\"}",
                    "\"subtype\":\"notification\"," PAYLOAD("\"displayText\":\"shown\"")),
                "note:shown;");
    check_parts(ROW("{\"text\":\"a\"}", "\"provenance\":\"goal_runtime\""), "note:a;");
    check_parts(ROW("{\"text\":\"a\"}", "\"subtype\":\"mid_turn_user_message\""), "text:a;");
    check_parts(COMMANDS("\"phase\":\"invocation\",\"rawCommand\":\"/about\""), "text:/about;");
    check_parts(COMMANDS("\"phase\":\"result\",\"outputHistoryItems\":[{\"text\":\"v\"}]"),
                "note:v;");
    check_parts(COMMANDS("\"rawCommand\":\"/about\",\"hiddenInvocation\":true"), "none");
    check_parts(COMMANDS("\"rawCommand\":\"/about\",\"sentToModel\":true"), "none");
    check_parts(COMMANDS("\"phase\":\"result\",\"outputHistoryItems\":[]"), "none");
    check_parts(COMMANDS("\"rawCommand\":7"), "none");
}

#define LISTED(type, content) \
    "{\"id\":\"1\",\"timestamp\":\"t\",\"type\":\"" type "\",\"content\":" content "}"

TEST(message_text__messages_of_a_list_have_authors)
{
    static const char list[] =
        LISTED("user", "\"a\"") "," LISTED("gemini", "[{\"text\":\"b\"}]") "," LISTED(
            "user", "[{\"text\":\"<user_query>c</user_query>\"}]");
    char payload[1024];

    snprintf(payload, sizeof(payload), "{\"$set\":{\"messages\":[%s,7]}}", list);
    check_parts(payload, "user's text:a;assistant's text:b;user's text:c;");
}

TEST(message_text__call_without_output_has_what_the_client_says)
{
    check_parts("{\"event\":{\"type\":\"tool.result\",\"result\":{\"output\":\"\","
                "\"message\":\"Not allowed\"}}}",
                "result:|Not allowed;");
    check_parts("{\"event\":{\"type\":\"tool.result\",\"result\":{\"output\":\"o\","
                "\"message\":\"Not allowed\"}}}",
                "result:|o;");
}

TEST(message_text__words_of_a_person_are_in_a_tag)
{
    check_parts(USER("\"<timestamp>Friday</timestamp>\\n<user_query>\\n my \\\\n words\\n"
                     "</user_query>\\n\""),
                "note:Friday;text:my \\n words;");
    check_parts(USER("\"<anything>a</anything><user_query>b</user_query> c</user_query>\""),
                "note:a;text:b</user_query> c;");
    check_parts(USER("\"<USER_REQUEST>b</USER_REQUEST>\\n<ADDITIONAL_METADATA>{}"
                     "</ADDITIONAL_METADATA>\""),
                "text:b;note:{};");
    check_parts(USER("\"<environment_context>\\n<cwd>/w</cwd>\\n</environment_context>\""),
                "note:<cwd>/w</cwd>;");
    /* A tag that people write too is the client's only without anything else. */
    check_parts(USER("\"<context>a</context>\""), "note:a;");
    check_parts(USER("\"<context>a</context> b\""), "text:<context>a</context> b;");
    check_parts(USER("\"<context>a</context><user_query>b</user_query>\""), "note:a;text:b;");
}

TEST(message_text__escape_sequences_that_are_not_colours_stay)
{
    check_parts(USER("\"a\\u001b[2Kb\\u001b[\""), "text:a\033[2Kb\033[;");
    check_parts(USER("\"\\u001b[1;\""), "text:\033[1;;");
    check_parts(USER("\"\\u001b[38:5:1mred\""), "text:\033[38:5:1mred;");
    check_parts(USER("\"\\ud83d \\u001b\""), "text:\xef\xbf\xbd \033;");
}

#define ATTACHMENT(members) "{\"type\":\"attachment\",\"attachment\":{\"type\":" members "}}"

TEST(message_text__queued_prompts_are_messages)
{
    static const char *const others[] = {
        ATTACHMENT("\"queued_command\",\"prompt\":\"p\""),
        ATTACHMENT("\"queued_command\",\"prompt\":\"p\",\"commandMode\":\"task-notification\""),
        ATTACHMENT("\"queued_command\",\"prompt\":7,\"commandMode\":\"prompt\""),
        ATTACHMENT("\"hook_success\",\"prompt\":\"p\",\"commandMode\":\"prompt\""),
        "{\"type\":\"attachment\",\"attachment\":7}",
        "{\"type\":\"queue-operation\",\"operation\":\"remove\",\"content\":\"p\"}",
        "{\"type\":\"turn_context\",\"payload\":{\"model\":\"m\",\"summary\":\"auto\"}}",
        "{\"type\":\"queue-operation\",\"operation\":\"dequeue\"}",
        "{\"type\":\"queue-operation\",\"operation\":\"enqueue\",\"content\":[\"p\"]}",
    };
    struct wal__message message;
    struct wal__json_token note;
    const char *key;

    check_parts(ATTACHMENT("\"queued_command\",\"prompt\":\"p\",\"commandMode\":\"prompt\""),
                "text:p;");
    check_parts(ATTACHMENT("\"queued_command\",\"commandMode\":\"prompt\",\"prompt\":[{\"type\":"
                           "\"text\",\"text\":\"p\"},{\"type\":\"image\"}]"),
                "text:p;other:image;");
    check_parts("{\"type\":\"queue-operation\",\"operation\":\"enqueue\",\"content\":\"p\"}",
                "text:p;");
    check_parts("{\"type\":\"queue-operation\",\"operation\":\"enqueue\",\"content\":"
                "\"<task-notification>t</task-notification>\"}",
                "note:t;");
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        assert_false(wal__message_find(span_of(others[i]), &message));
        assert_false(wal__message_find_note(span_of(others[i]), &note, &key));
    }
}

TEST(message_text__what_was_sent_to_the_model_is_no_message)
{
    struct wal__message message;

    assert_false(wal__message_find(span_of("{\"type\":\"api-request-blob\",\"message\":"
                                           "{\"role\":\"user\",\"content\":\"p\"}}"),
                                   &message));
    assert_false(wal__message_find(span_of("{\"message\":{\"role\":\"user\",\"content\":\"p\"},"
                                           "\"type\":\"api-request\"}"),
                                   &message));
    check_parts("{\"type\":\"api\",\"message\":{\"role\":\"user\",\"content\":\"p\"}}", "text:p;");
    check_parts("{\"type\":7,\"message\":{\"role\":\"user\",\"content\":\"p\"}}", "text:p;");
}

TEST(message_text__is_note)
{
    struct wal__message message;

    assert_true(wal__message_find(
        span_of(USER("\"<local-command-stdout></local-command-stdout>\"")), &message));
    assert_true(wal__message_is_note(&message));
    assert_true(wal__message_find(span_of(USER("\"<system-reminder>a</system-reminder> and b\"")),
                                  &message));
    assert_false(wal__message_is_note(&message));
    assert_true(wal__message_find(span_of(USER("[]")), &message));
    assert_false(wal__message_is_note(&message));
}

/* ------------------------------------------------------------- the queue --- */

#define QUEUE(operation, content) \
    "{\"type\":\"queue-operation\",\"operation\":\"" operation "\"" content "}"
#define SAYS(text) "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"" text "\"}}"
#define APPENDS(text)                                                                             \
    "{\"type\":\"context.append_message\",\"message\":{\"role\":\"user\",\"content\":[{\"type\":" \
    "\"text\",\"text\":\"" text "\"}]}}"
#define ANSWERS "{\"type\":\"assistant\",\"message\":{\"role\":\"assistant\",\"content\":[]}}"
#define QUEUED(text) \
    ATTACHMENT("\"queued_command\",\"commandMode\":\"prompt\",\"prompt\":\"" text "\"")

/* The fate of a text after these payloads, up to the first that decides it. */
static enum wal__queued_fate fate_of(const char *text, const char *const *payloads)
{
    struct wal__queued queued = {.text = span_of(text)};
    enum wal__queued_fate fate = WAL__QUEUED_OPEN;

    for (size_t i = 0; payloads[i] != NULL && fate == WAL__QUEUED_OPEN; i++) {
        fate = wal__queued_read(&queued, span_of(payloads[i]));
    }
    return fate;
}

TEST(message_text__text_in_the_queue_that_is_repeated)
{
    static const char *const rows[][4] = {
        {ANSWERS, SAYS("words"), NULL},
        {QUEUE("dequeue", ""), SAYS("one\\nwords\\ntwo"), NULL},
        {QUEUE("remove", ",\"content\":\"words\""), QUEUED("words"), ANSWERS, NULL},
        {QUEUE("remove", ""), SAYS("words"), NULL},
        {APPENDS("others"), APPENDS("words"), NULL},
        {QUEUE("popAll", ",\"content\":\"other\\nwords\""), NULL},
        {QUEUE("popAll", ""), NULL},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(fate_of("\"words\"", rows[i]), WAL__QUEUED_REPEATED);
    }
    assert_int_equal(
        fate_of("\"/compact now\"",
                (const char *const[]){SAYS("<command-name>/compact</command-name>"), NULL}),
        WAL__QUEUED_REPEATED);
    assert_int_equal(fate_of("\"\"", (const char *const[]){"{}", NULL}), WAL__QUEUED_REPEATED);
}

TEST(message_text__prompts_of_turns_are_messages)
{
    static const char blocks[] =
        "{\"type\":\"turn.prompt\",\"input\":[{\"type\":\"text\",\"text\":\"words\"},"
        "{\"type\":\"image_url\"}],\"origin\":{\"kind\":\"user\"}}";
    struct wal__message message;
    struct wal__queued queued;

    check_parts(blocks, "text:words;other:image_url;");
    check_parts("{\"type\":\"turn.steer\",\"input\":\"words\"}", "text:words;");
    check_parts("{\"type\":\"turn.prompt\",\"input\":\"words\",\"origin\":{\"kind\":\"hook\"}}",
                "note:words;");
    check_parts("{\"message\":{\"type\":\"TurnBegin\",\"payload\":{\"user_input\":\"words\"}}}",
                "text:words;");
    assert_false(wal__message_find(span_of("{\"type\":\"turn.prompt\",\"input\":7}"), &message));
    assert_false(wal__message_find(span_of("{\"message\":{\"type\":\"TurnBegin\",\"payload\":{}}}"),
                                   &message));
    assert_true(wal__message_find(span_of(blocks), &message) && message.is_queued);
    wal__queued_init(&queued, &message);
    assert_int_equal(queued.text.size, 7);
}

TEST(message_text__text_in_the_queue_that_is_lost)
{
    static const char *const rows[][4] = {
        {APPENDS("others"), "{\"type\":\"turn.prompt\",\"input\":\"more\"}", APPENDS("words"),
         NULL},
        {QUEUE("remove", ",\"content\":\"words\""), ANSWERS, SAYS("words"), NULL},
        {QUEUE("remove", ""), SAYS("swords"), ANSWERS, NULL},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(fate_of("\"words\"", rows[i]), WAL__QUEUED_LOST);
    }
}

TEST(message_text__text_that_waits_in_the_queue)
{
    static const char *const rows[] = {
        QUEUE("remove", ",\"content\":\"other\""),
        QUEUE("popAll", ",\"content\":\"other\""),
        ANSWERS,
        SAYS("sword"),
        SAYS("words and more"),
        QUEUED("wordsmith"),
        "{\"type\":\"user\",\"toolUseResult\":{},\"message\":{\"content\":[{\"content\":"
        "\"words\"}]}}",
        "{\"type\":\"user\",\"message\":\"words\"}",
        "[\"words\"]",
        "7",
        NULL,
    };

    assert_int_equal(fate_of("\"words\"", rows), WAL__QUEUED_OPEN);
    assert_int_equal(
        fate_of("\"/compact\"",
                (const char *const[]){SAYS("<command-name>/comp</command-name>"), NULL}),
        WAL__QUEUED_OPEN);
}
