/*
 * bench_depth.cc - does a session cost more the deeper its forks are? A chain of
 * forks, each with one entry, is held against a single fork: making a
 * level, a durable append, a read by id of an entry of the root, and the last 50
 * entries. Then the last 50 entries of a long session, in a fresh process.
 */
#include "bench/fill.h"

namespace
{

const uint64_t root_entries = 60;
const uint64_t last = 50;
const int block = 50; /* calls of each kind in a turn */

void append_one(wal_session *session, const std::string &id)
{
    static const std::string payload =
        "{\"role\":\"user\",\"content\":\"" + std::string(70, 'x') + "\"}";
    wal_entry entry = bench::entry(id, payload);

    bench::append(session, &entry, 1);
}

wal_session *fork_once(wal_session *session)
{
    wal_session *fork = nullptr;

    bench::require(wal_session_fork(session, {}, nullptr, &fork, nullptr) == WAL_OK, "cannot fork");
    return fork;
}

/* Reads the last 50 entries; seconds. */
double read_last(wal_session *session)
{
    wal_entry_cursor_options options = {};
    wal_entry_cursor *cursor = nullptr;
    wal_entry entry = {};
    uint64_t found = 0;

    options.struct_size = sizeof(options);
    options.last = last;
    entry.struct_size = sizeof(entry);
    double begin = bench::now();
    bench::require(wal_entry_cursor_open(session, &options, &cursor, nullptr) == WAL_OK,
                   "cannot open an iterator");
    while (wal_entry_cursor_next(cursor, &entry, nullptr) == WAL_OK) {
        found++;
    }
    wal_entry_cursor_close(cursor);
    double gone = bench::now() - begin;
    bench::require(found == last, "other entries were read");
    return gone;
}

/* A chain of forks in a separate store, and the times of its calls. */
struct chain {
    bench::folder place;
    wal_store *store;
    wal_session *session;
    uint64_t made = 0;
    bench::series level, append, by_id, tail;

    explicit chain(uint64_t depth) : store(bench::open_store(place / "store"))
    {
        session = bench::create_session(store, "root");
        for (uint64_t i = 0; i < root_entries; i++) {
            append_one(session, bench::number_id("r", i));
        }
        while (made < depth) {
            wal_session *fork = fork_once(session);

            append_one(fork, bench::number_id("l", made++));
            wal_session_close(session);
            session = fork;
        }
    }

    ~chain()
    {
        wal_session_close(session);
        bench::close_store(store);
    }

    chain(const chain &) = delete;
    chain &operator=(const chain &) = delete;

    /* A level is made from the last one, so that the depth stays. */
    void add_level()
    {
        double begin = bench::now();
        wal_session *fork = fork_once(session);

        append_one(fork, bench::number_id("l", made++));
        level.add(bench::now() - begin);
        wal_session_close(fork);
    }

    void run()
    {
        const std::string id = bench::number_id("r", 7);
        wal_entry entry = {};

        entry.struct_size = sizeof(entry);
        for (int i = 0; i < block; i++) {
            add_level();
            double begin = bench::now();
            append_one(session, bench::number_id("a", made++));
            append.add(bench::now() - begin);
            begin = bench::now();
            for (int j = 0; j < block; j++) {
                bench::require(wal_entry_get(session, bench::slice(id), &entry, nullptr) == WAL_OK,
                               "an entry is missing");
            }
            by_id.add((bench::now() - begin) / block);
            tail.add(read_last(session));
        }
    }
};

void report_depth(const std::string &what, const std::string &depth, const bench::series &deep,
                  const bench::series &flat)
{
    bench::report({"chain of " + depth + " forks to one, " + what, bench::micros(deep.median()),
                   bench::micros(flat.median()), deep.median() / flat.median(),
                   bench::wanted::at_most, 1.5, "x"});
}

void chains(benchmark::State &state)
{
    const uint64_t depth = bench::pick<uint64_t>(500, 5000, 5000);
    const std::string name = std::to_string(depth);
    chain deep(depth), flat(1);

    deep.run();
    flat.run();
    deep.level = deep.append = deep.by_id = deep.tail = {};
    flat.level = flat.append = flat.by_id = flat.tail = {};
    for (auto _ : state) {
        deep.run();
        flat.run();
        state.SetIterationTime(deep.append.median());
    }
    report_depth("making a level", name, deep.level, flat.level);
    report_depth("append", name, deep.append, flat.append);
    report_depth("read by id", name, deep.by_id, flat.by_id);
    report_depth("last 50", name, deep.tail, flat.tail);
}

/* --- a long session ----------------------------------------------------- */

/* PATH: the time of the last 50 entries of a session, in this process. */
void read_cold(const bench::arguments &given)
{
    wal_store *store = bench::open_store(given[0], 0);
    wal_session *session = bench::open_session(store, "s");

    bench::answer({read_last(session)});
    wal_session_close(session);
    bench::close_store(store);
}

void long_session(benchmark::State &state)
{
    const uint64_t count = bench::pick<uint64_t>(200000, 1000000, 5000000);
    bench::folder place;
    std::string path = place / "store";
    bench::source source(8);
    bench::series times;

    if (!bench::has_room(state, "a session of " + std::to_string(count), place,
                         count * 300 + (1 << 29))) {
        return;
    }
    wal_store *store = bench::open_store(path);
    wal_session *session = bench::create_session(store, "s");
    bench::fill_session(session, 0, count, 100, source);
    wal_session_close(session);
    bench::close_store(store);
    for (auto _ : state) {
        times.add(bench::run_child("read_cold", {path})[0]);
        state.SetIterationTime(times.median());
    }
    bench::report({"last 50 of " + std::to_string(count) + " entries, fresh process",
                   bench::micros(times.median()), "", times.median() * 1e3, bench::wanted::at_most,
                   2, "ms", times.quantile(0) * 1e3, times.quantile(1) * 1e3});
}

void setup()
{
    bench::add("depth", bench::pick(2, 4, 10), chains);
    bench::add("depth/last", bench::pick(5, 7, 15), long_session);
}

} // namespace

int main(int argc, char **argv)
{
    return bench::run(argc, argv, setup, {{"read_cold", read_cold}});
}
