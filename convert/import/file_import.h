/*
 * file_import.h - the import of one file of lines.
 *
 * A file continues the session whose lines are its beginning, whatever the ordinal in that
 * session's source; otherwise it becomes a new session. With import->matches_ids, these are also
 * the sessions that have the file's id and file name; and if such a session begins with the file's
 * lines, the file adds nothing.
 *
 * A file that goes on from a line of another file (struct wal__line_info.base) becomes a fork at
 * that line, or if it states the id of that file's session, lines of that session: a branch. The
 * head is on the file whose name is the last one. Without the line, the session is partial: it has
 * the file's lines alone, and the first of them an issue; once the line is there, an import of the
 * file makes the session anew.
 *
 * A file that is a view of a session of the store adds to that session.
 *
 * A file that is what it was when its session had all of it, and whose session nobody has changed
 * since, is known without being read: by a stamp in the session's metadata.
 *
 * Invariant: importing a file again appends no entry. Importing a file that has grown appends the
 * new lines, and gives the same session as one import of the whole file.
 *
 * Threads: one thread at a time per import.
 */
#ifndef AGENTWAL_CONVERT_IMPORT_FILE_IMPORT_H
#define AGENTWAL_CONVERT_IMPORT_FILE_IMPORT_H

#include "convert/import/import.h"
#include "convert/import/line_import.h"
#include "convert/source/source_name.h"

struct wal__import_file {
    struct wal__import *import;
    int fd;
    uint64_t size;
    int64_t modified_ms; /* time of the file, where no line has one */
    const char *name;
    const char *path;
    const char *title;              /* that the client has in another file; or NULL */
    struct wal__import_about about; /* what the session says of the file */
    struct wal__file_probe probe;
    struct wal_session *session;
    char source[WAL__SOURCE_SIZE_MAX + 1]; /* of the session */
    uint64_t seen;                         /* last_sequence of the session before it was read */
    /* unused source for a new session */
    char free_source[WAL__SOURCE_SIZE_MAX + 1];
    struct wal__import_lines lines;
    char id[WAL__FILE_ID_SIZE]; /* of the file, of its name; or "" */
    /* The session with the line that the file goes on from: lines.base. NULL: it is not known. */
    struct wal_session *base;
    /* The session of other files of the same thread, to which this one belongs; or NULL. */
    struct wal_session *thread;
    const char *original; /* id of a session with the same id and first lines; or NULL */
    const char *missing;  /* id of the file that it, or what it goes on from, lacks; or NULL */
    bool is_new;          /* the session was created */
    bool drops_sidecar;   /* there is one that the session does not keep */
    bool is_deferred;     /* it waits for the file that it goes on from */
    bool is_other;        /* it is not the source of the session */
    uint64_t count;       /* lines of the file */
    bool is_covered;      /* the session has all its lines, and more */
    bool has_other_id;    /* the new session could not have the file's id */
};

/* --- what a file goes on from (file_base.c) ------------------------------ */

/* Finds the line that the file goes on from: file->base, and lines.base. Without it, or if the
 * session that has it is partial, sets file->missing, and lines.missing to what people read. */
enum wal_status wal__import_find_base(struct wal__import_file *file,
                                      struct wal_error *error) WAL_MUST_USE;

/* Closes file->base and file->thread. */
void wal__import_forget_base(struct wal__import_file *file);

/* Returns whether the session is partial for want of a file; then writes that file's id. */
bool wal__import_is_partial(struct wal_session *session, char missing[WAL__STRING_MAX + 1]);

/* Opens a session that was imported from the file's dialect. NULL: there is none. */
struct wal_session *wal__import_open_of_dialect(const struct wal__import_file *file,
                                                const char *id);

/* Returns true if a file with the id waits for the end of the walk. */
bool wal__import_is_waiting(const struct wal__import *import, const char *id);

/* --- what its path says (file_path.c) ------------------------------------- */

/* Sets what the path of the file says of its session, and what the client has in another file. */
void wal__import_probe_path(struct wal__import_file *file, struct wal__file_probe *probe);

/* Updates what the session says of its sidecar, unless another program has changed what it says. */
enum wal_status wal__import_update_about(struct wal__import_file *file,
                                         struct wal_error *error) WAL_MUST_USE;

/* --- its forms (file_form.c) ----------------------------------------------- */

/* The file that a session was imported from, in relation to a file of its dialect. */
enum wal__import_place {
    WAL__PLACE_OTHER,
    WAL__PLACE_SAME,     /* it has that name */
    WAL__PLACE_OF_ID,    /* its client names the session by another component of the path */
    WAL__PLACE_OF_LINES, /* it is one object, and the file has its messages as lines */
};

enum wal__import_place wal__import_place_of(const struct wal__import_file *file,
                                            struct wal_session *session);

/* Which of two forms the session and the file are. */
enum wal__import_form {
    WAL__FORM_OTHER,  /* none of each other */
    WAL__FORM_OLDER,  /* the file has all lines of the session in a newer form, or place */
    WAL__FORM_COVERED /* the session has all lines of the file in a newer form */
};

enum wal_status wal__import_compare_forms(struct wal__import_file *file,
                                          struct wal_session *session, enum wal__import_form *form,
                                          struct wal_error *error) WAL_MUST_USE;

/* --- files --------------------------------------------------------------- */

/* Imports an open regular file and reports the result. `name` is the path as it is reported, `path`
 * is relative to the argument of the import. */
enum wal_status wal__import_file(struct wal__import *import, int fd, const char *name,
                                 const char *path, struct wal_error *error) WAL_MUST_USE;

/* Reports the file that import->stat is of, if its path gives its dialect and it is known without
 * being read (SPEC.md 5.19). */
enum wal_status wal__import_known_file(struct wal__import *import, const char *name,
                                       const char *path, bool *is_known,
                                       struct wal_error *error) WAL_MUST_USE;

/* Imports a file of lines into a stream of a session directory's session, and reports the result.
 * The stream must be a prefix of the file. */
enum wal_status wal__import_stream(struct wal__import *import, int fd, const char *name,
                                   struct wal_session *session, const struct wal__dialect *dialect,
                                   uint32_t stream, struct wal_error *error) WAL_MUST_USE;

/* Imports the lines that were appended to a view into its session, and reports the result. *is_view
 * is false if the file is not a view, or is one that was changed other than by appending; then
 * import->view_session is its session. */
enum wal_status wal__import_view(struct wal__import *import, int fd, const char *name,
                                 bool *is_view, struct wal_error *error) WAL_MUST_USE;

#endif
