/*
 * bench_fork.cc - does a fork cost the same whatever the session's length? Forks of a session of a
 * million entries and of one of ten in turns: the time and the bytes of log of each. A durable fork
 * of 10,000 entries is held against a bare write and sync, and against a copy of a session's file.
 * Then the time to load a session up to an entry in its middle: the last entries before it, and all
 * of them.
 */
#include <algorithm>
#include <cmath>
#include <cstring>

#include "bench/fill.h"
#include "bench/peers/peer.h"

namespace
{

const uint64_t few = 10;
const uint64_t last = 50;  /* entries that are loaded before one */
const size_t id_room = 64; /* of a line: its id is there */

struct forks {
    wal_session *session;
    bench::series times, bytes;

    void fork(wal_store *store)
    {
        uint64_t before = bench::store_status(store).log_bytes;
        wal_session *copy = nullptr;
        wal_slice head = {};
        double begin = bench::now();

        bench::require(wal_session_fork(session, head, nullptr, &copy, nullptr) == WAL_OK,
                       "cannot fork");
        times.add(bench::now() - begin);
        bytes.add(static_cast<double>(bench::store_status(store).log_bytes - before));
        wal_session_close(copy);
    }
};

void fork_sessions(benchmark::State &state)
{
    const uint64_t many = bench::pick<uint64_t>(100000, 1000000, 1000000);
    bench::folder place;
    wal_store *store = bench::open_store(place / "store");
    bench::source source(4);
    forks large = {bench::create_session(store, "a"), {}, {}};
    forks small = {bench::create_session(store, "b"), {}, {}};

    bench::fill_session(large.session, 0, many, 200, source);
    bench::fill_session(small.session, 0, few, 200, source);
    bench::require(wal_sync(store, nullptr) == WAL_OK, "cannot sync");
    large.fork(store);
    small.fork(store);
    large.times = small.times = large.bytes = small.bytes = {};
    for (auto _ : state) {
        large.fork(store);
        small.fork(store);
        state.SetIterationTime(large.times.median());
    }
    wal_session_close(large.session);
    wal_session_close(small.session);
    bench::close_store(store);

    std::string name =
        "fork of " + std::to_string(many) + " entries to one of " + std::to_string(few);
    bench::report({name + ", time", bench::micros(large.times.median()),
                   bench::micros(small.times.median()), large.times.median() / small.times.median(),
                   bench::wanted::at_most, 1.25, "x"});
    bench::report({name + ", bytes of log",
                   std::to_string(static_cast<int>(large.bytes.median())) + " B",
                   std::to_string(static_cast<int>(small.bytes.median())) + " B",
                   large.bytes.median() / small.bytes.median(), bench::wanted::at_most, 1.1, "x"});
}

/* --- a fork and one write ----------------------------------------------- */

/* A session in a separate file, with the same number of entries. */
std::string make_file(const std::string &path, uint64_t count)
{
    std::unique_ptr<bench::peer> store = bench::find_kind("jsonl-open-written").open(path);
    std::unique_ptr<bench::peer_session> session = store->create("s");
    bench::source source(5);

    for (uint64_t i = 0; i < count; i++) {
        session->append(i, source.mixed());
    }
    return path + "/s.jsonl";
}

/* A fork without a store: the file copied, and synced with its name. */
double copy_session(const std::string &file, const bench::folder &place)
{
    std::string copy = place / "copy";
    double begin = bench::now();

    bench::copy_file(file, copy);
    bench::sync_file(copy);
    bench::sync_file(place.path());
    double gone = bench::now() - begin;
    bench::remove_all(copy);
    return gone;
}

void fork_durably(benchmark::State &state)
{
    const uint64_t count = 10000;
    const int block = bench::pick(20, 50, 200);
    bench::folder place;
    bench::raw_log bare(place / "bare", 16 << 20);
    wal_store *store = bench::open_store(place / "store");
    bench::source source(5);
    forks whole = {bench::create_session(store, "s"), {}, {}};
    bench::series times, bares, copies;

    bench::fill_session(whole.session, 0, count, 0, source);
    bench::require(wal_sync(store, nullptr) == WAL_OK, "cannot sync");
    std::string file = make_file(place / "files", count);
    for (auto _ : state) {
        bench::series limit;

        whole.times = whole.bytes = {};
        for (int i = 0; i < block; i++) {
            whole.fork(store);
            double begin = bench::now();
            bare.append(static_cast<uint64_t>(whole.bytes.median()));
            limit.add(bench::now() - begin);
        }
        times.add(whole.times.median());
        bares.add(limit.median());
        copies.add(copy_session(file, place));
        state.SetIterationTime(whole.times.median());
    }
    wal_session_close(whole.session);
    bench::close_store(store);
    bench::report_sync_ratios("durable fork of 10000 entries, to a bare write + sync",
                              bench::micros(times.median()), bench::micros(bares.median()),
                              times.over(bares), bench::wanted::at_most, 1.3);
    bench::report_sync_ratios("durable fork of 10000 entries, to copying and syncing their file",
                              bench::micros(times.median()), bench::micros(copies.median()),
                              times.over(copies), bench::wanted::nothing, 0);
}

/* --- loading up to an entry --------------------------------------------- */

/* Opens the session's branch up to an entry in its middle and reads `count` of the last entries
 * before it; seconds. */
double load_up_to(wal_session *session, uint64_t count, uint64_t wanted)
{
    std::string id = bench::number_id("e", count / 2);
    wal_entry_cursor_options options = {};
    wal_entry entry = {};
    wal_entry_cursor *cursor = nullptr;
    uint64_t found = 0;

    options.struct_size = sizeof(options);
    options.up_to = bench::slice(id);
    options.skip = count / 2 + 1 - wanted;
    entry.struct_size = sizeof(entry);
    double begin = bench::now();
    bench::require(wal_entry_cursor_open(session, &options, &cursor, nullptr) == WAL_OK,
                   "cannot open an iterator");
    while (wal_entry_cursor_next(cursor, &entry, nullptr) == WAL_OK) {
        found++;
    }
    double gone = bench::now() - begin;
    bench::require(found == wanted && bench::text(entry.id) == id, "other entries were loaded");
    wal_entry_cursor_close(cursor);
    return gone;
}

/* All entries up to that one, as a resumed agent loads them. */
double load_all_up_to(wal_session *session, uint64_t count)
{
    return load_up_to(session, count, count / 2 + 1);
}

/* The same of a file: its lines, until the id is found. */
double read_up_to(const std::string &path, uint64_t count)
{
    std::string id = bench::record_key("s", count / 2);
    uint64_t found = 0;
    bool there = false;
    double begin = bench::now();
    bench::mapped_file file(path, false);
    const char *at = reinterpret_cast<const char *>(file.data());
    const char *end = at + file.size();

    while (!there && at < end) {
        const char *stop =
            static_cast<const char *>(memchr(at, '\n', static_cast<size_t>(end - at)));

        bench::require(stop != nullptr, "a line is cut short");
        there = memmem(at, std::min(id_room, static_cast<size_t>(stop - at)), id.data(),
                       id.size()) != nullptr;
        found++;
        at = stop + 1;
    }
    double gone = bench::now() - begin;
    bench::require(there && found == count / 2 + 1, "other lines were read");
    return gone;
}

void load_whole(benchmark::State &state)
{
    const uint64_t count = bench::pick<uint64_t>(20000, 100000, 100000);
    bench::folder place;
    wal_store *store = bench::open_store(place / "store");
    wal_session *session = bench::create_session(store, "s");
    bench::source source(5);
    bench::series times, files;

    bench::fill_session(session, 0, count, 0, source);
    std::string file = make_file(place / "files", count);
    load_all_up_to(session, count);
    read_up_to(file, count);
    for (auto _ : state) {
        times.add(load_all_up_to(session, count));
        files.add(read_up_to(file, count));
        state.SetIterationTime(times.median());
    }
    wal_session_close(session);
    bench::close_store(store);
    bench::report_ratios("all entries up to one in the middle of " + std::to_string(count) +
                             ", to finding the lines of a JSONL file",
                         bench::millis(times.median()), bench::millis(files.median()),
                         times.over(files), bench::wanted::nothing, 0);
}

void load(benchmark::State &state)
{
    const uint64_t many = bench::pick<uint64_t>(100000, 1000000, 1000000);
    const uint64_t other = 1000;
    bench::folder place;
    wal_store *store = bench::open_store(place / "store");
    wal_session *longer = bench::create_session(store, "long");
    wal_session *shorter = bench::create_session(store, "short");
    bench::source source(6);
    bench::series times, bares;

    bench::fill_session(longer, 0, many, 200, source);
    bench::fill_session(shorter, 0, other, 200, source);
    load_up_to(longer, many, last);
    load_up_to(shorter, other, last);
    for (auto _ : state) {
        times.add(load_up_to(longer, many, last));
        bares.add(load_up_to(shorter, other, last));
        state.SetIterationTime(times.median());
    }
    wal_session_close(longer);
    wal_session_close(shorter);
    bench::close_store(store);
    bench::report_ratios("50 entries up to one in the middle of " + std::to_string(many) +
                             ", to the same of " + std::to_string(other),
                         bench::micros(times.median()), bench::micros(bares.median()),
                         times.over(bares), bench::wanted::nothing, 0);
}

void setup()
{
    bench::add("fork/durable", bench::pick(5, 9, 15), fork_durably);
    bench::add("fork/load all", bench::pick(7, 15, 15), load_whole);
    bench::add("fork/load", bench::pick(50, 100, 500), load);
    bench::add("fork", bench::pick(50, 100, 500), fork_sessions);
}

} // namespace

int main(int argc, char **argv)
{
    return bench::run(argc, argv, setup, {});
}
