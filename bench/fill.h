/*
 * fill.h - stores for the benchmarks that read: filled fast, from a seed.
 */
#ifndef AGENTWAL_BENCH_FILL_H
#define AGENTWAL_BENCH_FILL_H

#include "bench/harness/harness.h"

namespace bench
{

/* Appends `count` entries to a session, ids "e-0" to "e-...", in large batches. size 0: mixed. */
void fill_session(wal_session *session, uint64_t from, uint64_t count, size_t size, source &source,
                  wal_durability durability = WAL_WRITTEN);

/* The path of each log segment, sorted. */
std::vector<std::string> segment_paths(const std::string &store);

} // namespace bench

#endif
