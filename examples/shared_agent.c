/*
 * shared_agent.c - an agent that shares its store, and its session, with other processes, keeps the
 * parts of an answer, and undoes turns:
 *
 *   shared_agent STORE    continues the newest session of the current directory
 *
 * Each line of its input is a prompt. The model is scripted: it writes the prompt to note.txt and
 * answers. /undo undoes the last turn, /fork continues in a fork. Ctrl-C interrupts an answer; so
 * does the prompt "stop".
 */
#define _DEFAULT_SOURCE
#include <agentwal.h>
#include <agentwal/checkpoint.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct agent {
    struct wal_session *session;
    char head[WAL_ID_SIZE];   /* the last entry that this process knows */
    char prompt[WAL_ID_SIZE]; /* the last prompt before it, or empty */
    char partial[1024];       /* an answer without an end, or empty */
};

static struct wal_error error = WAL_INIT(wal_error);
static volatile sig_atomic_t interrupted;

static void interrupt(int number)
{
    interrupted = number;
}

static void check(enum wal_status status)
{
    if (status < 0) {
        fprintf(stderr, "agent: %s\n", error.text);
        exit(1); /* what was appended stays */
    }
}

static struct wal_slice slice(const char *text)
{
    return (struct wal_slice){text, strlen(text)};
}

static void fork_session(struct agent *agent)
{
    struct wal_session *fork;

    check(wal_session_fork(agent->session, slice(agent->head), NULL, &fork, &error));
    wal_session_close(agent->session);
    agent->session = fork;
    printf("(fork)\n");
}

static const char *make_id(char id[WAL_ID_SIZE])
{
    static unsigned count;

    snprintf(id, WAL_ID_SIZE, "%lx-%x-%u", (unsigned long)time(NULL), (unsigned)getpid(), count++);
    return id;
}

/* Appends an entry under the head, which moves to it, but not to a delta. */
static void append(struct agent *agent, const char *id, const char *type, uint32_t durability,
                   const char *form, ...)
{
    struct wal_append_options options = WAL_INIT(wal_append_options);
    struct wal_entry entry = WAL_INIT(wal_entry);
    enum wal_status status;
    int attempts = 0;
    char payload[2048];
    va_list arguments;

    va_start(arguments, form);
    vsnprintf(payload, sizeof(payload), form, arguments);
    va_end(arguments);
    entry.id = slice(id);
    entry.type = slice(type);
    entry.payload = slice(payload);
    options.durability = durability;
    options.flags = WAL_APPEND_EXPECT;
    options.expected_tail = slice(agent->head);
    while ((status = wal_append(agent->session, &entry, 1, &options, NULL, &error)) != WAL_OK) {
        if (status == WAL_ECONFLICT) { /* another process continued it */
            fork_session(agent);
        } else if ((status != WAL_EPOISONED && status != WAL_EIO) ||
                   ++attempts == 3) { /* else unknown: send it again */
            check(status);
        }
    }
    if (strcmp(type, WAL_TYPE_MESSAGE_DELTA_BATCH) != 0) {
        strcpy(agent->head, id);
    }
}

/* Makes one message of the deltas since the last one, if there are any. */
static void end_answer(struct agent *agent, const char *stop)
{
    char id[WAL_ID_SIZE];

    if (agent->partial[0] != '\0') {
        append(agent, make_id(id), WAL_TYPE_MESSAGE, WAL_DURABLE,
               "{\"role\":\"assistant\",\"content\":\"%s\","
               "\"stopReason\":\"%s\"}",
               agent->partial, stop);
        printf("assistant: %s (%s)\n", agent->partial, stop);
        agent->partial[0] = '\0';
    }
}

/* Reads the branch of the head, and ends an answer that a dead process left. */
static void load(struct agent *agent)
{
    struct wal_entry_cursor_options options = WAL_INIT(wal_entry_cursor_options);
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct wal_entry_cursor *cursor;
    enum wal_status status;

    agent->head[0] = agent->prompt[0] = agent->partial[0] = '\0';
    options.flags = WAL_ENTRY_CURSOR_DELTAS;
    check(wal_entry_cursor_open(agent->session, &options, &cursor, &error));
    while ((status = wal_entry_cursor_next(cursor, &entry, &error)) == WAL_OK) {
        const char *payload = entry.payload.data;
        size_t used = strlen(agent->partial);

        if (strncmp(payload, "{\"text\":\"", 9) == 0) {
            snprintf(agent->partial + used, sizeof(agent->partial) - used, "%.*s",
                     (int)entry.payload.size - 11, payload + 9);
            continue;
        }
        snprintf(agent->head, WAL_ID_SIZE, "%.*s", WAL_ARG(entry.id));
        if (strncmp(payload, "{\"role\":\"user\"", 14) == 0) {
            strcpy(agent->prompt, agent->head);
        }
    }
    check(status);
    wal_entry_cursor_close(cursor);
    end_answer(agent, "aborted");
}

/* The tool. Records the file first, in the checkpoint of the prompt. */
static void write_note(struct agent *agent, const char *text)
{
    struct wal_checkpoint_options options = WAL_INIT(wal_checkpoint_options);
    struct wal_slice path = WAL_STR("note.txt");
    FILE *file;

    options.id = slice(agent->prompt);
    check(wal_checkpoint_create(agent->session, &path, 1, &options, NULL, &error));
    file = fopen("note.txt", "w");
    if (file == NULL || fprintf(file, "%s\n", text) < 0 || fclose(file) != 0) {
        perror("agent: note.txt");
    }
}

static void run_turn(struct agent *agent, const char *text)
{
    static const char *const deltas[] = {"I wrote ", "it ", "down."};
    struct wal_checkpoint_options options = WAL_INIT(wal_checkpoint_options);
    char id[WAL_ID_SIZE];

    interrupted = 0;
    options.id = slice(make_id(agent->prompt)); /* of no file yet */
    check(wal_checkpoint_create(agent->session, NULL, 0, &options, NULL, &error));
    append(agent, agent->prompt, WAL_TYPE_MESSAGE, WAL_DURABLE,
           "{\"role\":\"user\",\"content\":\"%s\"}", text);
    append(agent, make_id(id), WAL_TYPE_MESSAGE, WAL_DURABLE,
           "{\"role\":\"assistant\",\"content\":[{\"type\":\"toolCall\","
           "\"id\":\"call-%s\",\"name\":\"write\",\"arguments\":"
           "{\"path\":\"note.txt\"}}],\"stopReason\":\"toolUse\"}",
           agent->prompt);
    write_note(agent, text);
    append(agent, make_id(id), WAL_TYPE_MESSAGE, WAL_DURABLE,
           "{\"role\":\"tool\",\"toolCallId\":\"call-%s\","
           "\"content\":\"written\"}",
           agent->prompt);
    for (int i = 0; i < 3 && !interrupted; i++) {
        append(agent, make_id(id), WAL_TYPE_MESSAGE_DELTA_BATCH, WAL_WRITTEN, "{\"text\":\"%s\"}",
               deltas[i]);
        strcat(agent->partial, deltas[i]);
        if (strcmp(text, "stop") == 0) {
            raise(SIGINT);
        }
    }
    end_answer(agent, interrupted ? "aborted" : "end");
}

/* Rewinds the files and the conversation to where they were before the last prompt, or neither. */
static void undo_turn(struct agent *agent)
{
    struct wal_rewind_options options = WAL_INIT(wal_rewind_options);
    struct wal_rewind_result result = WAL_INIT(wal_rewind_result);

    options.flags = WAL_REWIND_HEAD;
    check(wal_rewind(agent->session, slice(agent->prompt), &options, &result, NULL, &error));
    printf("%s\n", result.can_rewind ? "undone" : result.error);
    load(agent);
}

static void open_session(struct agent *agent, struct wal_store *store)
{
    struct wal_session_options options = WAL_INIT(wal_session_options);
    char directory[4096], id[WAL_ID_SIZE];
    int32_t created;

    options.cwd = slice(getcwd(directory, sizeof(directory)));
    check(wal_session_open_or_create(store, &options, &agent->session, &created, &error));
    load(agent);
    if (created) { /* a first entry, to which the first turn can be undone */
        append(agent, make_id(id), WAL_TYPE_MODEL_CHANGE, WAL_DURABLE,
               "{\"provider\":\"none\",\"modelId\":\"script\"}");
    }
    printf("%s session\n", created ? "new" : "resumed");
}

int main(int argc, char **argv)
{
    struct wal_open_options options = WAL_INIT(wal_open_options);
    struct agent agent = {.session = NULL};
    struct wal_store *store;
    char line[512];

    signal(SIGINT, interrupt);
    options.flags = WAL_OPEN_CREATE;
    check(wal_open(argc > 1 ? argv[1] : "store", &options, &store, &error));
    open_session(&agent, store);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        line[strcspn(line, "\"\\\n")] = '\0'; /* needs no escape in JSON */
        if (strcmp(line, "/undo") == 0) {
            undo_turn(&agent);
        } else if (strcmp(line, "/fork") == 0) {
            fork_session(&agent);
        } else {
            run_turn(&agent, line);
        }
    }
    wal_session_close(agent.session);
    check(wal_close(store, &error));
    return 0;
}
