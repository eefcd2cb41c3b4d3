/*
 * bench_replay.cc - how fast is a session read, each entry verified when it is first touched? A
 * session of 100,000 entries is replayed by an iterator and held against a bare checksum pass over
 * the same segments: once with the maps populated on both sides, so that the checksum and the
 * decoding are all that is measured, and once from fresh maps; then again by the same process,
 * which has verified it.
 */
#include <sys/mman.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "bench/fill.h"

namespace
{

const uint64_t seed = 3;

uint64_t entry_count()
{
    return bench::pick<uint64_t>(100000, 100000, 1000000);
}

/* Populates every map that this process has of a file below path. */
size_t populate_maps(const std::string &path)
{
    std::ifstream maps("/proc/self/maps");
    std::string text;
    size_t populated = 0;

    while (std::getline(maps, text)) {
        uint64_t begin, end;
        size_t at = text.find(path);

        if (at == std::string::npos ||
            sscanf(text.c_str(), "%" SCNx64 "-%" SCNx64, &begin, &end) != 2) {
            continue;
        }
        bench::require(madvise(reinterpret_cast<void *>(begin), end - begin, MADV_POPULATE_READ) ==
                           0,
                       "cannot populate a map");
        populated += end - begin;
    }
    return populated;
}

wal_entry_cursor *open_iter(wal_session *session)
{
    wal_entry_cursor *cursor = nullptr;

    bench::require(wal_entry_cursor_open(session, nullptr, &cursor, nullptr) == WAL_OK,
                   "cannot open an iterator");
    return cursor;
}

wal_status get(wal_entry_cursor *cursor, uint64_t number, wal_entry *entry)
{
    std::string id = bench::number_id("e", number);

    entry->struct_size = sizeof(*entry);
    return wal_entry_cursor_get(cursor, bench::slice(id), entry, nullptr);
}

/* --- children ----------------------------------------------------------- */

/* PATH: the store; a fresh process fills it and closes it. */
void fill(const bench::arguments &given)
{
    wal_store *store = bench::open_store(given[0]);
    wal_session *session = bench::create_session(store, "s");
    bench::source source(seed);

    bench::fill_session(session, 0, entry_count(), 0, source);
    wal_session_close(session);
    bench::close_store(store);
}

/* Reads to the end; seconds. */
double pass(wal_session *session)
{
    wal_entry_cursor *cursor = open_iter(session);
    wal_entry entry = {};
    uint64_t count = 0;
    wal_status status;

    entry.struct_size = sizeof(entry);
    double begin = bench::now();
    while ((status = wal_entry_cursor_next(cursor, &entry, nullptr)) == WAL_OK) {
        count++;
    }
    double gone = bench::now() - begin;
    bench::require(status == WAL_END && count == entry_count(), "the replay is not whole");
    wal_entry_cursor_close(cursor);
    return gone;
}

/* Has the engine map every segment, which it does when it first reads there, and brings all of the
 * maps in. */
void populate(wal_session *session, const std::string &path)
{
    wal_entry_cursor *cursor = open_iter(session);
    wal_entry entry = {};

    for (uint64_t i = 0; i < entry_count(); i += 100) {
        bench::require(get(cursor, i, &entry) == WAL_OK, "no entry");
    }
    bench::require(populate_maps(path + "/log") > 0, "no maps");
    wal_entry_cursor_close(cursor);
}

/* PATH populate|fresh: replays twice; seconds of both, bytes of the log. */
void replay(const bench::arguments &given)
{
    wal_store *store = bench::open_store(given[0], 0);
    wal_session *session = bench::open_session(store, "s");

    if (given[1] == "populate") {
        populate(session, given[0]);
    }
    double first = pass(session);
    double second = pass(session);
    bench::answer({first, second, static_cast<double>(bench::store_status(store).log_bytes)});
    wal_session_close(session);
    bench::close_store(store);
}

using checksum = uint32_t (*)(const void *, size_t);

/* A bare pass over a number of bytes of files; seconds. */
double pass_over(const std::vector<std::string> &paths, uint64_t bytes, bool populate, checksum crc)
{
    uint64_t left = bytes;
    double gone = 0;

    for (size_t i = 0; i < paths.size() && left > 0; i++) {
        double begin = bench::now();
        bench::mapped_file file(paths[i], populate);
        uint64_t size = std::min<uint64_t>(left, file.size());

        if (populate) {
            begin = bench::now();
        }
        benchmark::DoNotOptimize(crc(file.data(), size));
        gone += bench::now() - begin;
        left -= size;
    }
    return gone;
}

/* BYTES populate|fresh PATH...: bare passes by libdeflate and by agentwal. */
void bare_pass(const bench::arguments &given)
{
    bool populate = given[1] == "populate";
    uint64_t bytes = std::stoull(given[0]);
    std::vector<std::string> paths(given.begin() + 2, given.end());
    double linked = pass_over(paths, bytes, populate, bench::system_crc);

    bench::answer({linked, pass_over(paths, bytes, populate, bench::own_crc)});
}

/* --- measuring ---------------------------------------------------------- */

void replay_session(benchmark::State &state, const char *how, double target)
{
    bench::folder place;
    std::string path = place / "store";
    bench::series rates, again, bares, owns;

    bench::run_child("fill", {path});
    bench::sync_file_system(place.path());
    for (auto _ : state) {
        std::vector<double> results = bench::run_child("replay", {path, how});
        bench::arguments given = {std::to_string(static_cast<uint64_t>(results[2])), how};

        for (const std::string &segment : bench::segment_paths(path)) {
            given.push_back(segment);
        }
        rates.add(results[2] / results[0]);
        again.add(results[2] / results[1]);
        std::vector<double> bare = bench::run_child("bare_pass", given);
        bares.add(results[2] / bare[0]);
        owns.add(results[2] / bare[1]);
        state.SetIterationTime(results[0]);
    }
    std::string name = "replay, " + std::to_string(entry_count()) + " entries, " +
                       (std::string(how) == "fresh" ? "fresh maps" : "populated maps");
    std::string bare =
        bench::gigabytes_per_second(bares.median()) + " (" + bench::library_crc_name + ")";
    bench::report_ratios(name + ", to a bare CRC pass", bench::gigabytes_per_second(rates.median()),
                         bare, rates.over(bares),
                         target > 0 ? bench::wanted::at_least : bench::wanted::nothing, target);
    bench::report_ratios(
        name + ", to a pass by agentwal's own CRC", bench::gigabytes_per_second(rates.median()),
        bench::gigabytes_per_second(owns.median()), rates.over(owns), bench::wanted::nothing, 0);
    bench::report_ratios(name + ", second pass, to a bare CRC pass",
                         bench::gigabytes_per_second(again.median()), bare, again.over(bares),
                         bench::wanted::nothing, 0);
}

void setup()
{
    int turns = bench::pick(5, 9, 9);

    bench::add("replay/populated", turns,
               [](benchmark::State &state) { replay_session(state, "populate", 0.85); });
    bench::add("replay/fresh", turns,
               [](benchmark::State &state) { replay_session(state, "fresh", 0); });
}

} // namespace

int main(int argc, char **argv)
{
    return bench::run(argc, argv, setup,
                      {{"fill", fill}, {"replay", replay}, {"bare_pass", bare_pass}});
}
