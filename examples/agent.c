/*
 * agent.c - an agent that keeps its session in a store:
 *
 *   agent STORE    continues the newest session of the current directory
 *
 * Each line of its input is a prompt. The model is scripted: it writes the prompt to note.txt, and
 * answers. Ctrl-C interrupts an answer; so does the prompt "stop". /fork continues in a fork. See
 * also shared_agent.c.
 */
#define _DEFAULT_SOURCE
#include <agentwal.h>
#include <agentwal/checkpoint.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
        exit(1);
    }
}

/* Appends a message; it is on stable storage when this returns. */
static void append(struct wal_session *session, const char *format, const char *text,
                   const char *stop)
{
    char payload[1024];
    struct wal_slice slice = {payload, 0};

    snprintf(payload, sizeof(payload), format, text, stop);
    slice.size = strlen(payload);
    check(wal_append_one(session, WAL_TYPE_MESSAGE, slice, NULL, &error));
}

static void print_session(struct wal_session *session)
{
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct wal_entry_cursor *cursor;
    enum wal_status status;

    check(wal_entry_cursor_open(session, NULL, &cursor, &error));
    while ((status = wal_entry_cursor_next(cursor, &entry, &error)) == WAL_OK) {
        printf("%.*s\n", WAL_ARG(entry.payload));
    }
    check(status);
    wal_entry_cursor_close(cursor);
}

/* The tool. The checkpoint records the file before it is changed. */
static void write_note(struct wal_session *session, const char *text)
{
    struct wal_slice path = WAL_STR("note.txt");
    FILE *file;

    check(wal_checkpoint_create(session, &path, 1, NULL, NULL, &error));
    file = fopen("note.txt", "w");
    if (file == NULL || fprintf(file, "%s\n", text) < 0 || fclose(file) != 0) {
        perror("agent: note.txt");
    }
}

static void run_turn(struct wal_session *session, const char *prompt)
{
    static const char *const stream[] = {"I wrote ", "it ", "down."};
    char answer[64] = "";

    append(session, "{\"role\":\"user\",\"content\":\"%s\"}", prompt, "");
    write_note(session, prompt);
    interrupted = 0;
    for (int i = 0; i < 3 && !interrupted; i++) {
        strcat(answer, stream[i]);
        interrupted |= strcmp(prompt, "stop") == 0;
    }
    append(session, "{\"role\":\"assistant\",\"content\":\"%s\",\"stopReason\":\"%s\"}", answer,
           interrupted ? "aborted" : "end");
    printf("%s\n", answer);
}

int main(int argc, char **argv)
{
    struct wal_session_options work = WAL_INIT(wal_session_options);
    struct wal_open_options options = WAL_INIT(wal_open_options);
    struct wal_session *session, *fork;
    struct wal_store *store;
    char cwd[4096], line[512];

    signal(SIGINT, interrupt);
    options.flags = WAL_OPEN_CREATE;
    check(wal_open(argc > 1 ? argv[1] : "store", &options, &store, &error));
    work.cwd.data = getcwd(cwd, sizeof(cwd));
    work.cwd.size = strlen(cwd);
    check(wal_session_open_or_create(store, &work, &session, NULL, &error));
    print_session(session);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        line[strcspn(line, "\"\\\n")] = '\0'; /* needs no escape in JSON */
        if (strcmp(line, "/fork") == 0) {
            check(wal_session_fork(session, WAL_STR(""), NULL, &fork, &error));
            wal_session_close(session);
            session = fork;
        } else {
            run_turn(session, line);
        }
    }
    wal_session_close(session);
    check(wal_close(store, &error));
    return 0;
}
