/*
 * bundle.c - what processes that were killed left of bundles, for the tools
 * (docs/machines.md). Any thread.
 */
#ifndef AGENTWAL_ENGINE_CARE_BUNDLE_H
#define AGENTWAL_ENGINE_CARE_BUNDLE_H

/* Where the temporary store of a bundle is made that is read, unless the caller
 * names a directory: TMPDIR, or /tmp. */
const char *wal__bundle_default_place(void);

/* bundle_remove_leftovers of a directory of the real system. */
void wal__bundle_sweep(const char *place);

#endif
