/*
 * patch.h - the difference between two texts as hunks of a unified diff.
 *
 * Invariant: applied to the first text the hunks give the second. They are
 * minimal unless the texts differ in more than SHOWN_PATCH_EDITS lines; then
 * one hunk replaces all between the first and the last difference.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_TOOLS_SHOWN_PATCH_H
#define AGENTWAL_TOOLS_SHOWN_PATCH_H

#include <stdio.h>

#include "agentwal.h"

enum {
    SHOWN_PATCH_EDITS = 1000, /* lines removed and added, of a minimal patch */
    SHOWN_PATCH_CONTEXT = 3   /* equal lines around a difference */
};

/* Writes the hunks, without the lines that name the files. */
void shown_patch(FILE *file, struct wal_slice before, struct wal_slice after);

#endif
