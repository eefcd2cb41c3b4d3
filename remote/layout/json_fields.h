/*
 * json_fields.h - what the objects in JSON share: an output to a buffer, and
 * members that must have a form.
 *
 * Threads: any.
 */
#ifndef AGENTWAL_REMOTE_LAYOUT_JSON_FIELDS_H
#define AGENTWAL_REMOTE_LAYOUT_JSON_FIELDS_H

#include "format/json/json_out.h"
#include "format/json/json_scan.h"
#include "remote/layout/object_json.h"

/* An output that appends to the buffer. */
struct wal__json_out wal__fields_out(struct wal__buf *buf);
/* WAL_OK, or WAL_ENOMEM after a failure of the output. */
enum wal_status wal__fields_end(const struct wal__json_out *out) WAL_MUST_USE;

/* Finds the members of an object; false unless the text is JSON, and each is
 * there once. */
bool wal__fields_find(struct wal__json_span json,
                      struct wal__json_member *members, size_t count);

/* The values of a member; false: it has another form. */
bool wal__fields_get_integer(const struct wal__json_member *member, int64_t min,
                             int64_t max, int64_t *value);
/* Copies a string of printable ASCII and terminates it. */
bool wal__fields_get_text(const struct wal__json_member *member, char *out,
                          size_t capacity);

/* Checks the member "version" of an object: WAL_OK, WAL_ECORRUPT when there is
 * none, WAL_EVERSION when it is not 1. */
enum wal_status wal__fields_check_version(struct wal__json_span json,
                                          const char *name,
                                          struct wal_error *error) WAL_MUST_USE;

#endif
