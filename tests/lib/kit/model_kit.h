/*
 * model_kit.h - sessions of any dialect in memory, read, written and compared.
 *
 * Files are read as an import reads them: ids, parents and the head are those that the log would
 * have. All that is allocated is freed when the test ends.
 */
#ifndef AGENTWAL_TESTS_LIB_KIT_MODEL_KIT_H
#define AGENTWAL_TESTS_LIB_KIT_MODEL_KIT_H

#include "convert/model/dialect.h"

struct model_kit_file {
    char *path;
    char *data;
    size_t size;
    size_t capacity;
    bool is_document;
};

struct model_kit_files {
    struct model_kit_file *items;
    size_t count;
    size_t chosen;
    bool fails; /* the output refuses all from now on */
};

/* Adds a file; data is copied. */
void model_kit_files_add(struct model_kit_files *files, const char *path, bool is_document,
                         const void *data, size_t size);
/* The file whose path ends so, or NULL. */
const struct model_kit_file *model_kit_files_find(const struct model_kit_files *files,
                                                  const char *end);

struct model_kit {
    struct wal__arena memory;
    struct wal__model_session session;
    struct wal__model_item *items;
    size_t count;
    bool *is_live; /* on the way to the head */
    struct wal__json_span head;
    size_t damaged; /* lines that are no JSON */
};

/* Reads a session; zeroes *kit first. Fails the test where it cannot. */
void model_kit_read(struct model_kit *kit, const char *dialect,
                    const struct model_kit_files *files);

/* The same of one file of lines. */
void model_kit_read_text(struct model_kit *kit, const char *dialect, const char *text);

/* Writes it; losses may be NULL. False: the writer says so. */
bool model_kit_write(const struct model_kit *kit, const char *dialect,
                     struct model_kit_files *files, uint64_t *losses);

/* The value is that string, or null: it is not there. */
void assert_is(struct wal__json_span span, const char *text);
/* It is written so. */
void assert_number(struct wal__json_span span, const char *digits);

/* What the dialect says of a line. */
struct wal__line_info model_kit_line(const struct wal__dialect *dialect, const char *text);

/* Canonical JSON, a line an item, without what is not carried. */
char *model_kit_canon(const struct model_kit *kit, uint64_t carries,
                      const struct wal__dialect *target);
void model_kit_assert_same(const struct model_kit *one, const struct model_kit *other,
                           uint64_t carries, const struct wal__dialect *target);

#endif
