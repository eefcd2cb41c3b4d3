/*
 * fill.cc - stores for the benchmarks that read.
 */
#include "bench/fill.h"

#include <algorithm>

namespace bench
{

void fill_session(wal_session *session, uint64_t from, uint64_t count, size_t size, source &source,
                  wal_durability durability)
{
    const uint64_t batch = 500;

    for (uint64_t done = 0; done < count; done += batch) {
        uint64_t now = std::min(batch, count - done);
        std::vector<std::string> ids;
        std::vector<std::string> payloads;
        std::vector<wal_entry> entries;

        ids.reserve(now);
        payloads.reserve(now);
        for (uint64_t i = 0; i < now; i++) {
            ids.push_back(number_id("e", from + done + i));
            payloads.push_back(size == 0 ? source.mixed() : source.message(size));
            entries.push_back(entry(ids.back(), payloads.back()));
        }
        append(session, entries.data(), static_cast<uint32_t>(now), durability);
    }
}

std::vector<std::string> segment_paths(const std::string &store)
{
    std::vector<std::string> paths;

    for (const std::string &name : names(store + "/log")) {
        /* The next one may be in the making. */
        if (name.size() > 4 && name.substr(name.size() - 4) == ".seg") {
            paths.push_back(store + "/log/" + name);
        }
    }
    return paths;
}

} // namespace bench
