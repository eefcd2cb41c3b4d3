/*
 * source_chain.h - linking the segments of a stream (source.h). For source.c
 * and source_chain.c alone.
 */
#ifndef AGENTWAL_ENGINE_SALVAGE_SOURCE_CHAIN_H
#define AGENTWAL_ENGINE_SALVAGE_SOURCE_CHAIN_H

#include "engine/salvage/source.h"

/* Lists the segments of source->log or source->pack, reads their heads and
 * links the chain. WAL_ENOMEM. source_chain.c */
enum wal_status
wal__source_link(struct wal__source *source,
                 struct wal__source_stream *stream) WAL_MUST_USE;

/* Reads header, OPEN and trailer. WAL_ENOMEM. source.c */
enum wal_status
wal__source_read_head(struct wal__source *source,
                      struct wal__source_segment *segment) WAL_MUST_USE;

/* Fills *start for a scan of the segment from its first group. source_scan.c */
void wal__source_init_start(const struct wal__source_segment *segment,
                            struct wal__scan_start *start);

#endif
