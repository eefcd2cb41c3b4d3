/*
 * bench_open.cc - how long does opening take after kill -9, and after a clean close? A process
 * fills a store and kills itself; another opens it. The limit is one checksum pass over the largest
 * segment, 64 MiB, from a fresh map: whatever the store holds, opening scans one segment at most.
 * The store is killed when its tail is nearly full, which is the worst it can be.
 */
#include <algorithm>
#include <filesystem>

#include "bench/fill.h"

namespace
{

const uint64_t pass_size = 64 << 20;
const double tail_full = 0.85;
const size_t copied_segments = 3; /* the tail, a preallocated one, and one more */

struct store_size {
    const char *name;
    uint64_t bytes;
};

const store_size sizes[] = {{"0.1 GB", 100000000}, {"1 GB", 1000000000}, {"10 GB", 10000000000}};

/* --- children ----------------------------------------------------------- */

/* PATH BYTES: fills a store with 50 sessions, durably, and dies when its tail is nearly full. */
void fill(const bench::arguments &given)
{
    wal_store *store = bench::open_store(given[0]);
    uint64_t bytes = std::stoull(given[1]);
    bench::source source(2);
    std::vector<wal_session *> sessions;
    uint64_t segments = 0, ended = 0;

    for (uint64_t i = 0; i < 50; i++) {
        sessions.push_back(bench::create_session(store, bench::number_id("s", i)));
    }
    for (uint64_t count = 0;; count += 20) {
        for (wal_session *session : sessions) {
            bench::fill_session(session, count, 20, 0, source, WAL_DURABLE);
        }
        wal_store_info info = bench::store_status(store);
        if (info.segments != segments) {
            segments = info.segments;
            ended = info.log_bytes;
        }
        uint64_t tail = std::filesystem::file_size(bench::segment_paths(given[0])[segments - 1]);
        if (info.log_bytes >= bytes && static_cast<double>(info.log_bytes - ended) >=
                                           tail_full * static_cast<double>(tail) - 4e6) {
            bench::die();
        }
    }
}

/* PATH: opens, reports the time and what was found, and dies. */
void open_killed(const bench::arguments &given)
{
    double begin = bench::now();
    wal_store *store = bench::open_store(given[0], 0);
    double gone = bench::now() - begin;
    wal_store_info info = bench::store_status(store);

    bench::answer({gone, static_cast<double>(info.log_bytes), static_cast<double>(info.sessions)});
    bench::die();
}

/* PATH: opens, appends a little, durably, and dies. */
void append_killed(const bench::arguments &given)
{
    wal_store *store = bench::open_store(given[0], 0);
    wal_session *session = bench::open_session(store, "s-0");
    const std::string payload = "{}";

    for (uint64_t i = 0; i < 10; i++) {
        std::string id = bench::number_id("again", i);
        wal_entry entry = bench::entry(id, payload);

        bench::append(session, &entry, 1);
    }
    bench::die();
}

/* PATH: opens and closes. */
void close_cleanly(const bench::arguments &given)
{
    bench::close_store(bench::open_store(given[0], 0));
}

/* --- a store as it was left --------------------------------------------- */

/* Keeps what opening may change of a store that was killed, to put it back. Files keep their
 * inodes, so that the control page is as it was left. */
class killed_store
{
  public:
    killed_store(const bench::folder &place, uint64_t bytes)
        : path(place / "store"), kept(place / "kept")
    {
        bench::run_child("fill", {path, std::to_string(bytes)});
        std::filesystem::create_directories(kept + "/log");
        std::filesystem::create_directories(kept + "/index");
        segments = bench::names(path + "/log");
        for (const std::string &name : changing(path)) {
            bench::copy_file(path + "/" + name, kept + "/" + name);
        }
        bench::sync_file_system(path);
    }

    void put_back()
    {
        for (const std::string &name : bench::names(path + "/log")) {
            if (std::find(segments.begin(), segments.end(), name) == segments.end()) {
                bench::remove_all(path + "/log/" + name);
            }
        }
        drop_indexes();
        for (const std::string &name : changing(kept)) {
            bench::copy_file(kept + "/" + name, path + "/" + name);
        }
        bench::sync_file_system(path);
    }

    void drop_indexes()
    {
        for (const std::string &name : bench::names(path + "/index")) {
            bench::remove_all(path + "/index/" + name);
        }
    }

    const std::string path;

  private:
    /* The files in a folder that opening may change. */
    static std::vector<std::string> changing(const std::string &from)
    {
        std::vector<std::string> all = {"LOCK", "MANIFEST"};
        std::vector<std::string> logs = bench::names(from + "/log");
        size_t count = std::min(logs.size(), copied_segments);

        for (size_t i = logs.size() - count; i < logs.size(); i++) {
            all.push_back("log/" + logs[i]);
        }
        for (const std::string &name : bench::names(from + "/index")) {
            all.push_back("index/" + name);
        }
        return all;
    }

    std::string kept;
    std::vector<std::string> segments;
};

/* --- measuring ---------------------------------------------------------- */

using pass = uint32_t (*)(const void *, size_t);

/* One pass over 64 MiB that are in memory, from a fresh map. */
double pass_time(const std::string &path, pass crc)
{
    double begin = bench::now();
    bench::mapped_file file(path, false);

    benchmark::DoNotOptimize(crc(file.data(), file.size()));
    return bench::now() - begin;
}

struct measure {
    const char *name;
    void (*prepare)(killed_store &store);
    double target; /* 0: none */
    bench::series times, bares, zlibs, ratios, bytes;
};

void once(killed_store &)
{
}

void twice(killed_store &store)
{
    bench::run_child("append_killed", {store.path});
}

void without_indexes(killed_store &store)
{
    store.drop_indexes();
}

void closed(killed_store &store)
{
    bench::run_child("close_cleanly", {store.path});
}

void open_store(benchmark::State &state, const store_size &size)
{
    bench::folder place;
    measure measures[] = {{"kill -9", once, 1.5, {}, {}, {}, {}, {}},
                          {"two kills in a row", twice, 1.5, {}, {}, {}, {}, {}},
                          {"kill -9, index/ deleted", without_indexes, 0, {}, {}, {}, {}, {}},
                          {"clean close", closed, 0, {}, {}, {}, {}, {}}};
    std::string file = place / "pass";

    if (!bench::has_room(state, std::string("open, ") + size.name, place,
                         size.bytes + size.bytes / 10 + (1 << 29))) {
        return;
    }
    {
        bench::raw_log bare(file, pass_size);
    }
    killed_store store(place, size.bytes);
    for (auto _ : state) {
        for (measure &measure : measures) {
            store.put_back();
            measure.prepare(store);
            std::vector<double> results = bench::run_child("open_killed", {store.path});
            double bare = pass_time(file, bench::system_crc);

            bench::require(results.size() == 3, "the child reported nothing");
            measure.times.add(results[0]);
            measure.bares.add(bare);
            measure.zlibs.add(pass_time(file, bench::zlib_crc));
            measure.ratios.add(results[0] / bare);
            measure.bytes.add(results[1]);
        }
        state.SetIterationTime(measures[0].times.quantile(1));
    }
    for (const measure &measure : measures) {
        std::string name = std::string("open, ") + size.name + ", " + measure.name;

        bench::report_ratios(
            name, bench::millis(measure.times.median()),
            bench::millis(measure.bares.median()) + " (" + bench::library_crc_name + "; zlib " +
                bench::millis(measure.zlibs.median()) + ")",
            measure.ratios, measure.target > 0 ? bench::wanted::at_most : bench::wanted::nothing,
            measure.target);
    }
}

void setup()
{
    size_t count = bench::pick<size_t>(1, 2, 3);

    for (size_t i = 0; i < std::size(sizes); i++) {
        const store_size &size = sizes[i];

        if (i >= count) {
            bench::report_skipped(std::string("open, ") + size.name,
                                  i == 1 ? "not with --quick" : "only with --long");
            continue;
        }
        bench::add(std::string("open/") + size.name, bench::pick(5, 7, 9),
                   [&size](benchmark::State &state) { open_store(state, size); });
    }
}

} // namespace

int main(int argc, char **argv)
{
    return bench::run(argc, argv, setup,
                      {{"fill", fill},
                       {"open_killed", open_killed},
                       {"append_killed", append_killed},
                       {"close_cleanly", close_cleanly}});
}
