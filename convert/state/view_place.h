/*
 * view_place.h - where the state of views is kept (SPEC.md 10.4).
 *
 * Invariant: nothing but the views' files remains in a client's folder.
 *
 * Threads: any; the environment is read.
 */
#ifndef AGENTWAL_CONVERT_STATE_VIEW_PLACE_H
#define AGENTWAL_CONVERT_STATE_VIEW_PLACE_H

#include <limits.h>
#include <stdbool.h>

/* Writes the directory of the states of a root, which exists, and returns true
 * if that is not in the root: the root is a client's folder and has no state
 * from before. */
bool wal__view_place(const char *root, char path[PATH_MAX]);

#endif
