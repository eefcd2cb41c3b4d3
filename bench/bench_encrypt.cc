/*
 * bench_encrypt.cc - what does encryption cost? An encrypted store is held against a plain one with
 * the same entries, in turns: durable appends of 16 threads, a replay, opening, and the bytes that
 * a compacted store takes.
 */
#include <atomic>
#include <filesystem>
#include <thread>

#include "agentwal/admin.h"
#include "bench/fill.h"

namespace
{

const uint64_t seed = 5;
const int threads = 16;

uint64_t entry_count()
{
    return bench::pick<uint64_t>(50000, 100000, 1000000);
}

double append_seconds()
{
    return bench::pick(1.0, 2.0, 5.0);
}

wal_store *open_as(const std::string &path, const std::string &how, uint32_t flags)
{
    static const char secret[] = "thirty-two bytes of a random key";
    wal_key key = {};
    wal_open_options options = {};
    wal_error error = {};
    wal_store *store = nullptr;

    error.struct_size = sizeof(error);
    key.struct_size = sizeof(key);
    key.kind = WAL_KEY_SECRET;
    key.bytes = {secret, sizeof(secret) - 1};
    options.struct_size = sizeof(options);
    options.flags = flags;
    options.key = how == "encrypted" ? &key : nullptr;
    bench::check(wal_open(path.c_str(), &options, &store, &error), error);
    return store;
}

/* --- children ----------------------------------------------------------- */

/* PATH HOW: fills a store. */
void fill(const bench::arguments &given)
{
    wal_store *store = open_as(given[0], given[1], WAL_OPEN_CREATE);
    wal_session *session = bench::create_session(store, "s");
    bench::source source(seed);

    bench::fill_session(session, 0, entry_count(), 0, source);
    wal_session_close(session);
    bench::close_store(store);
}

/* PATH HOW: compacts it. */
void compact(const bench::arguments &given)
{
    wal_store *store = open_as(given[0], given[1], 0);
    wal_store_compact_result result = {};
    wal_error error = {};

    error.struct_size = sizeof(error);
    result.struct_size = sizeof(result);
    bench::check(wal_store_compact(store, nullptr, &result, &error), error);
    bench::close_store(store);
}

/* PATH HOW: the seconds to open, and to read all twice; the bytes of payload. */
void replay(const bench::arguments &given)
{
    double begin = bench::now();
    wal_store *store = open_as(given[0], given[1], 0);
    double opened = bench::now() - begin;
    wal_session *session = bench::open_session(store, "s");
    double gone[2];
    double bytes = 0;

    for (double &pass : gone) {
        wal_entry_cursor *cursor = nullptr;
        wal_entry entry = {};
        wal_status status;

        bytes = 0;
        entry.struct_size = sizeof(entry);
        bench::require(wal_entry_cursor_open(session, nullptr, &cursor, nullptr) == WAL_OK,
                       "cannot open a cursor");
        begin = bench::now();
        while ((status = wal_entry_cursor_next(cursor, &entry, nullptr)) == WAL_OK) {
            bytes += static_cast<double>(entry.payload.size);
        }
        pass = bench::now() - begin;
        bench::require(status == WAL_END, "the replay is not whole");
        wal_entry_cursor_close(cursor);
    }
    bench::answer({opened, gone[0], gone[1], bytes});
    wal_session_close(session);
    bench::close_store(store);
}

/* PATH HOW: appends of many threads; how many a second. */
void append(const bench::arguments &given)
{
    wal_store *store = open_as(given[0], given[1], WAL_OPEN_CREATE);
    std::atomic<uint64_t> count{0};
    std::vector<std::thread> all;
    const double end = bench::now() + append_seconds();

    for (int i = 0; i < threads; i++) {
        all.emplace_back([&, i] {
            const std::string name = "s" + std::to_string(i);
            wal_session *session = bench::create_session(store, name);
            bench::source source(seed + static_cast<uint64_t>(i));
            const std::string payload = source.message(1000);

            for (uint64_t number = 0; bench::now() < end; number++) {
                const std::string id = bench::number_id("e", number);
                const wal_entry entry = bench::entry(id, payload);

                bench::append(session, &entry, 1);
                count++;
            }
            wal_session_close(session);
        });
    }
    for (std::thread &one : all) {
        one.join();
    }
    bench::answer({static_cast<double>(count) / append_seconds()});
    bench::close_store(store);
}

/* --- measuring ---------------------------------------------------------- */

const std::vector<std::string> ways = {"plain", "encrypted"};

double bytes_of(const std::string &path)
{
    double bytes = 0;

    for (const auto &file : std::filesystem::recursive_directory_iterator(path)) {
        if (file.is_regular_file()) {
            bytes += static_cast<double>(file.file_size());
        }
    }
    return bytes;
}

void reading(benchmark::State &state, bool is_compacted)
{
    bench::folder place;
    std::map<std::string, bench::series> opened, first, second;
    std::map<std::string, double> bytes;
    const std::string what = is_compacted ? "a compacted store" : "a store";

    for (const std::string &way : ways) {
        bench::run_child("fill", {place / way, way});
        if (is_compacted) {
            bench::run_child("compact", {place / way, way});
        }
        bytes[way] = bytes_of(place / way);
    }
    bench::sync_file_system(place.path());
    for (auto _ : state) {
        for (const std::string &way : ways) {
            std::vector<double> results = bench::run_child("replay", {place / way, way});

            opened[way].add(results[0]);
            first[way].add(results[3] / results[1]);
            second[way].add(results[3] / results[2]);
            state.SetIterationTime(results[1]);
        }
    }
    bench::report_ratios("replay of " + what + ", encrypted to plain",
                         bench::gigabytes_per_second(second["encrypted"].median()),
                         bench::gigabytes_per_second(second["plain"].median()),
                         second["encrypted"].over(second["plain"]), bench::wanted::at_least, 0.5);
    bench::report_ratios("the same, first pass",
                         bench::gigabytes_per_second(first["encrypted"].median()),
                         bench::gigabytes_per_second(first["plain"].median()),
                         first["encrypted"].over(first["plain"]), bench::wanted::nothing, 0);
    bench::report({"opening " + what + " with a secret, more than plain",
                   bench::millis(opened["encrypted"].median()),
                   bench::millis(opened["plain"].median()),
                   (opened["encrypted"].median() - opened["plain"].median()) * 1000,
                   bench::wanted::at_most, 1, "ms"});
    if (is_compacted) {
        bench::report({"bytes of a compacted store, encrypted to plain",
                       bench::mebibytes(bytes["encrypted"]), bench::mebibytes(bytes["plain"]),
                       bytes["encrypted"] / bytes["plain"], bench::wanted::at_most, 1.05, "x"});
    }
}

void appending(benchmark::State &state)
{
    bench::folder place;
    std::map<std::string, bench::series> rates;
    int turn = 0;

    for (auto _ : state) {
        for (const std::string &way : ways) {
            const std::string path = place / (way + std::to_string(turn));

            rates[way].add(bench::run_child("append", {path, way})[0]);
            bench::remove_all(path);
        }
        turn++;
        state.SetIterationTime(append_seconds());
    }
    bench::report_sync_ratios(
        "durable appends of 16 threads, encrypted to plain",
        bench::per_second(rates["encrypted"].median()), bench::per_second(rates["plain"].median()),
        rates["encrypted"].over(rates["plain"]), bench::wanted::at_least, 0.9);
}

void setup()
{
    const int turns = bench::pick(5, 9, 9);

    bench::add("encrypt/append", turns, appending);
    bench::add("encrypt/replay", turns, [](benchmark::State &state) { reading(state, false); });
    bench::add("encrypt/compacted", turns, [](benchmark::State &state) { reading(state, true); });
}

} // namespace

int main(int argc, char **argv)
{
    return bench::run(
        argc, argv, setup,
        {{"fill", fill}, {"compact", compact}, {"replay", replay}, {"append", append}});
}
