/*
 * model_kit: sessions of any dialect in memory, read, written and compared.
 *
 * Files are read as an import reads them: ids, parents and the head are those
 * that the log would have.
 */
#ifndef TESTS_LIB_MODEL_KIT_H
#define TESTS_LIB_MODEL_KIT_H

#include "format/jsonl/dialect.h"

struct kit_file {
    char *path;
    char *data;
    size_t size;
    bool is_document;
};

struct kit_files {
    struct kit_file *items;
    size_t count;
    size_t chosen;
    bool fails; /* the output refuses all from now on */
};

/* Adds a file; data is copied. */
void kit_files_add(struct kit_files *files, const char *path, bool is_document,
                   const void *data, size_t size);
/* The file whose path ends so, or NULL. */
const struct kit_file *kit_files_find(const struct kit_files *files,
                                      const char *end);
void kit_files_free(struct kit_files *files);

struct kit_arena {
    struct wal__arena arena;
    void **pieces;
    size_t count;
};

struct kit {
    struct kit_arena memory;
    struct wal__model_session session;
    struct wal__model_item *items;
    size_t count;
    bool *is_live; /* on the way to the head */
    struct wal__json_span head;
    size_t damaged;   /* lines that are no JSON */
    const char *text; /* copy of all files, which spans lie in */
};

/* Reads a session; zeroes *kit first. Fails the test where it cannot. */
void kit_read(struct kit *kit, const char *dialect,
              const struct kit_files *files);

/* The same of one file of lines. */
void kit_read_text(struct kit *kit, const char *dialect, const char *text);

/* Writes it; losses may be NULL. False: the writer says so. */
bool kit_write(const struct kit *kit, const char *dialect,
               struct kit_files *files, uint64_t *losses);

/* Canonical JSON, a line an item, without what is not carried; to be freed. */
char *kit_canon(const struct kit *kit, uint64_t carries,
                const struct wal__dialect *target);

void kit_free(struct kit *kit);

#endif
