/*
 * assert.c - reports a broken invariant and aborts (assert.h). No section of
 * SPEC.md. Any thread.
 */
#include "format/bytes/assert.h"

#include <stdio.h>
#include <stdlib.h>

void wal__assert_failed(const char *condition, const char *file, int line)
{
    (void)fprintf(stderr, "agentwal: %s:%d: broken invariant: %s\n", file, line,
                  condition);
    abort();
}
