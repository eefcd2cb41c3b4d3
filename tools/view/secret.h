/*
 * secret.h - known forms of secrets in a text.
 *
 * Keys and tokens of known providers, JSON web tokens, private keys, values of
 * Authorization, passwords in URLs, and values of variables whose names end
 * with a word such as TOKEN, KEY, SECRET or PASSWORD.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_TOOLS_VIEW_SECRET_H
#define AGENTWAL_TOOLS_VIEW_SECRET_H

#include "tools/view/filter.h"

/* Finds the secret that begins at `at`; one whose name begins there is found
 * too, and *range is its value. */
bool view_secret_find(struct wal_slice text, size_t at,
                      struct view_range *range, enum view_kind *kind);

/* Whether the value of a member with this key is a secret. */
bool view_secret_is_key(struct wal_slice key, struct wal_slice value,
                        enum view_kind *kind);

#endif
