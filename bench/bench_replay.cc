/*
 * bench_replay.cc - how fast is a session read, each entry verified when it is
 * first touched? A session of 100,000 entries is replayed by an iterator and
 * held against a bare checksum pass over the same segments: once with the maps
 * populated on both sides, so that the checksum and the decoding are all that
 * is measured, and once from fresh maps. Then single entries by id.
 */
#include <sys/mman.h>

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
    return bench::pick<uint64_t>(20000, 100000, 1000000);
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
        bench::require(madvise(reinterpret_cast<void *>(begin), end - begin,
                               MADV_POPULATE_READ) == 0,
                       "cannot populate a map");
        populated += end - begin;
    }
    return populated;
}

wal_iter *open_iter(wal_session *session)
{
    wal_iter *iter = nullptr;

    bench::require(wal_iter_open(session, nullptr, &iter, nullptr) == WAL_OK,
                   "cannot open an iterator");
    return iter;
}

wal_status get(wal_iter *iter, uint64_t number, wal_entry *entry)
{
    std::string id = bench::number_id("e", number);

    entry->struct_size = sizeof(*entry);
    return wal_iter_get(iter, bench::slice(id), entry, nullptr);
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

/* PATH populate|fresh: replays; seconds, bytes of the log. */
void replay(const bench::arguments &given)
{
    wal_store *store = bench::open_store(given[0], 0);
    wal_session *session = bench::open_session(store, "s");
    wal_iter *iter = open_iter(session);
    wal_entry entry = {};
    uint64_t count = 0;
    wal_status status;

    if (given[1] == "populate") {
        /* The engine maps a segment when it first reads there. */
        for (uint64_t i = 0; i < entry_count(); i += 100) {
            bench::require(get(iter, i, &entry) == WAL_OK, "no entry");
        }
        bench::require(populate_maps(given[0] + "/log") > 0, "no maps");
    }
    double begin = bench::now();
    entry.struct_size = sizeof(entry);
    while ((status = wal_iter_next(iter, &entry, nullptr)) == WAL_OK) {
        count++;
    }
    double gone = bench::now() - begin;
    bench::require(status == WAL_END && count == entry_count(),
                   "the replay is not whole");
    bench::answer(
        {gone, static_cast<double>(bench::store_status(store).log_bytes)});
    wal_iter_close(iter);
    wal_session_close(session);
    bench::close_store(store);
}

/* PATH: reads entries by id at random places; seconds for each. */
void random_reads(const bench::arguments &given)
{
    const uint64_t reads = 20000;
    wal_store *store = bench::open_store(given[0], 0);
    wal_session *session = bench::open_session(store, "s");
    wal_iter *iter = open_iter(session);
    bench::source source(seed + 1);
    wal_entry entry = {};
    uint64_t bytes = 0;

    double begin = bench::now();
    bench::require(get(iter, 0, &entry) == WAL_OK, "no entry");
    double first = bench::now() - begin;
    begin = bench::now();
    for (uint64_t i = 0; i < reads; i++) {
        bench::require(get(iter, source.next(entry_count()), &entry) == WAL_OK,
                       "no entry");
        bytes += entry.payload.size;
    }
    double gone = bench::now() - begin;
    benchmark::DoNotOptimize(bytes);
    bench::answer({gone / static_cast<double>(reads), first});
    wal_iter_close(iter);
    wal_session_close(session);
    bench::close_store(store);
}

/* BYTES populate|fresh PATH...: a bare pass over so many bytes. */
void bare_pass(const bench::arguments &given)
{
    bool populate = given[1] == "populate";
    uint64_t left = std::stoull(given[0]);
    double gone = 0;

    for (size_t i = 2; i < given.size() && left > 0; i++) {
        double begin = bench::now();
        bench::mapped_file file(given[i], populate);
        uint64_t size = std::min<uint64_t>(left, file.size());

        if (populate) {
            begin = bench::now();
        }
        benchmark::DoNotOptimize(bench::library_crc(file.data(), size));
        gone += bench::now() - begin;
        left -= size;
    }
    bench::answer({gone});
}

/* --- measuring ---------------------------------------------------------- */

void replay_session(benchmark::State &state, const char *how, double target)
{
    bench::folder place;
    std::string path = place / "store";
    bench::series rates, bares, ratios;

    bench::run_child("fill", {path});
    bench::settle(place.path());
    for (auto _ : state) {
        std::vector<double> told = bench::run_child("replay", {path, how});
        bench::arguments given = {
            std::to_string(static_cast<uint64_t>(told[1])), how};

        for (const std::string &segment : bench::segment_paths(path)) {
            given.push_back(segment);
        }
        double bare = bench::run_child("bare_pass", given)[0];
        rates.add(told[1] / told[0]);
        bares.add(told[1] / bare);
        ratios.add(bare / told[0]);
        state.SetIterationTime(told[0]);
    }
    bench::report(
        {"replay, " + std::to_string(entry_count()) + " entries, " +
             (std::string(how) == "fresh" ? "fresh maps" : "populated maps"),
         bench::gigabytes_per_second(rates.median()),
         bench::gigabytes_per_second(bares.median()) + " (" +
             bench::library_crc_name + ")",
         ratios.median(),
         target > 0 ? bench::wanted::at_least : bench::wanted::nothing, target,
         "x"});
}

void read_by_id(benchmark::State &state)
{
    bench::folder place;
    std::string path = place / "store";
    bench::series times, firsts;

    bench::run_child("fill", {path});
    for (auto _ : state) {
        std::vector<double> told = bench::run_child("random_reads", {path});

        times.add(told[0]);
        firsts.add(told[1]);
        state.SetIterationTime(told[0]);
    }
    bench::report({"read by id, at random, fresh maps", "", "",
                   times.median() * 1e6, bench::wanted::nothing, 0, "us"});
}

void setup()
{
    int turns = bench::pick(5, 9, 9);

    bench::add("replay/populated", turns, [](benchmark::State &state) {
        replay_session(state, "populate", 0.8);
    });
    bench::add("replay/fresh", turns, [](benchmark::State &state) {
        replay_session(state, "fresh", 0);
    });
    bench::add("read by id", turns, read_by_id);
}

} // namespace

int main(int argc, char **argv)
{
    return bench::run(argc, argv, setup,
                      {{"fill", fill},
                       {"replay", replay},
                       {"random_reads", random_reads},
                       {"bare_pass", bare_pass}});
}
