/*
 * bench_compact.cc - what does a compaction give back, and what does it cost? Transcripts are
 * imported and compacted: the size of the store is held against theirs, with bare LZ4 and gzip next
 * to it; the time against a bare loop that reads, verifies, compresses, writes and syncs the same;
 * the latency of durable appends by four threads while another process compacts against that
 * without; reading what was compacted against decompressing it.
 */
#include <lz4.h>
#include <lz4hc.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "agentwal/admin.h"
#include "bench/fill.h"
#include "bench/harness/harness.h"
#include "bench/transcript.h"

namespace
{

namespace fs = std::filesystem;

const uint64_t file_size = 20000000;
const size_t block_size = 16 * 1024; /* as compact.c has them */
const int level = 6;
const size_t bare_block = 64 * 1024;
const size_t writers = 4;
const uint64_t lookups = 5000;
const int passes = 5;

uint64_t source_size()
{
    return bench::pick<uint64_t>(100000000, 200000000, 500000000);
}

/* --- stores ------------------------------------------------------------- */

void import(const std::string &store, const std::string &source)
{
    std::string tool =
        (fs::read_symlink("/proc/self/exe").parent_path() / "../bin/agentwal").string();
    std::string command = "'" + tool + "' --store '" + store +
                          "' import --no-progress --all-files '" + source + "' > /dev/null 2>&1";

    bench::close_store(bench::open_store(store));
    int code = system(command.c_str());

    /* 1: a line of a file is damaged. */
    bench::require(WIFEXITED(code) && WEXITSTATUS(code) <= 1, "the import failed");
}

/* Made transcripts of that many bytes. */
void make_files(const std::string &folder, uint64_t bytes)
{
    std::vector<char> row(TRANSCRIPT_ROW_MAX);

    fs::create_directories(folder);
    for (uint64_t done = 0; done < bytes; done += file_size) {
        transcript made;
        transcript_init(&made, done + 1);
        std::string path = folder + "/" + made.session + ".jsonl";
        FILE *file = fopen(path.c_str(), "w");
        uint64_t written = 0;

        bench::require(file != nullptr, "cannot write " + path);
        while (written < std::min(file_size, bytes - done)) {
            size_t size = transcript_row(&made, row.data());
            bench::require(fwrite(row.data(), 1, size, file) == size, "no space");
            written += size;
        }
        bench::require(fclose(file) == 0, "no space");
    }
}

/* Bytes of the files below a folder, as they are or as they take disk space. */
double bytes_below(const std::string &folder, bool on_disk)
{
    double bytes = 0;

    for (const fs::directory_entry &entry : fs::recursive_directory_iterator(folder)) {
        struct stat facts;

        if (entry.is_regular_file() && stat(entry.path().c_str(), &facts) == 0) {
            bytes += on_disk ? 512.0 * static_cast<double>(facts.st_blocks)
                             : static_cast<double>(facts.st_size);
        }
    }
    return bytes;
}

/* Bytes in use: without room that is preallocated. */
double bytes_in_use(const std::string &path)
{
    wal_store *store = bench::open_store(path, WAL_OPEN_READ_ONLY);
    wal_store_info info = bench::store_status(store);

    bench::close_store(store);
    return static_cast<double>(info.log_bytes + info.pack_bytes) +
           bytes_below(path + "/index", false);
}

void copy_store(const std::string &from, const std::string &to)
{
    bench::remove_all(to);
    fs::copy(from, to, fs::copy_options::recursive);
    bench::sync_file_system(to);
}

/* --- children ----------------------------------------------------------- */

/* PATH RATE: compacts, at that rate or for 0 at the default one. Seconds, bytes of log before, and
 * the most anonymous memory. */
void gc(const bench::arguments &given)
{
    wal_store *store = bench::open_store(given[0], 0);
    double log = static_cast<double>(bench::store_status(store).log_bytes);
    double base = bench::anonymous_memory(), peak = 0;
    std::atomic<bool> is_done{false};
    wal_store_compact_options options = WAL_INIT(wal_store_compact_options);
    wal_store_compact_result result = WAL_INIT(wal_store_compact_result);
    wal_error error = WAL_INIT(wal_error);
    std::thread watcher([&] {
        while (!is_done) {
            peak = std::max(peak, bench::anonymous_memory() - base);
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        }
    });

    options.rate = std::stoull(given[1]);
    double begin = bench::now();
    bench::check(wal_store_compact(store, &options, &result, &error), error);
    double gone = bench::now() - begin;
    is_done = true;
    watcher.join();
    bench::require(result.rewritten > 0 && result.refused == 0, "nothing was compacted");
    bench::answer({gone, log, peak});
    bench::close_store(store);
}

/* PATH OUT: the bare loop over the same segments. Seconds. */
void bare_loop(const bench::arguments &given)
{
    wal_store *store = bench::open_store(given[0], WAL_OPEN_READ_ONLY);
    uint64_t left = bench::store_status(store).log_bytes;
    std::vector<char> out(static_cast<size_t>(LZ4_compressBound(static_cast<int>(block_size))));

    bench::close_store(store);
    double begin = bench::now();
    FILE *to = fopen(given[1].c_str(), "w");
    bench::require(to != nullptr, "cannot write");
    for (const std::string &name : bench::names(given[0] + "/log")) {
        bench::mapped_file file(given[0] + "/log/" + name, false);
        size_t size = std::min<size_t>(left, file.size());
        const char *from = reinterpret_cast<const char *>(file.data());

        for (size_t at = 0; at < size; at += block_size) {
            size_t part = std::min(block_size, size - at);
            int got;

            benchmark::DoNotOptimize(bench::own_crc(from + at, part));
            got = LZ4_compress_HC(from + at, out.data(), static_cast<int>(part),
                                  static_cast<int>(out.size()), level);
            bench::require(got > 0 && fwrite(out.data(), 1, static_cast<size_t>(got), to) ==
                                          static_cast<size_t>(got),
                           "cannot write");
        }
        left -= size;
    }
    bench::require(fflush(to) == 0 && fdatasync(fileno(to)) == 0, "no sync");
    fclose(to);
    bench::answer({bench::now() - begin});
}

/* PATH SECONDS: four threads append durably, for that long, or for 0 while another process
 * compacts. Quantiles and the seconds. */
void append_meanwhile(const bench::arguments &given)
{
    wal_store *store = bench::open_store(given[0], 0);
    double limit = std::stod(given[1]), begin = bench::now();
    std::vector<std::vector<double>> times(writers);
    std::vector<std::thread> threads;
    std::atomic<bool> is_done{false};
    bench::series all;

    for (size_t i = 0; i < writers; i++) {
        threads.emplace_back([&, i] {
            wal_session *session = bench::create_session(store, bench::number_id("w", i), "/work");
            bench::source source(i + 1);
            uint64_t count = 0;

            while (limit > 0 ? bench::now() - begin < limit : !is_done) {
                std::string id = bench::number_id("e", count++);
                std::string payload = source.mixed();
                wal_entry entry = bench::entry(id, payload);
                double start = bench::now();

                bench::append(session, &entry, 1);
                times[i].push_back(bench::now() - start);
            }
            wal_session_close(session);
        });
    }
    if (limit == 0) {
        bench::run_child("gc", {given[0], "0"});
        is_done = true;
    }
    for (size_t i = 0; i < writers; i++) {
        threads[i].join();
        for (double time : times[i]) {
            all.add(time);
        }
    }
    bench::answer({all.quantile(0.99), all.quantile(0.5), static_cast<double>(all.count()),
                   bench::now() - begin});
    bench::close_store(store);
}

using block_list = std::vector<std::vector<char>>;

/* The text in blocks, as a compaction makes them. */
block_list compress(const std::string &text)
{
    block_list blocks;

    for (size_t at = 0; at < text.size(); at += block_size) {
        int size = static_cast<int>(std::min(block_size, text.size() - at));
        std::vector<char> block(static_cast<size_t>(LZ4_compressBound(size)));
        int got = LZ4_compress_HC(text.data() + at, block.data(), size,
                                  static_cast<int>(block.size()), level);

        block.resize(static_cast<size_t>(got));
        blocks.push_back(std::move(block));
    }
    return blocks;
}

/* Seconds of decompressing all. */
double decompress(const block_list &blocks)
{
    std::vector<char> out(block_size);
    double begin = bench::now();

    for (const std::vector<char> &block : blocks) {
        benchmark::DoNotOptimize(LZ4_decompress_safe(block.data(), out.data(),
                                                     static_cast<int>(block.size()),
                                                     static_cast<int>(out.size())));
    }
    return bench::now() - begin;
}

/* The session with most entries. */
wal_session *open_longest(wal_store *store)
{
    wal_session_cursor *list = nullptr;
    wal_session_info info = WAL_INIT(wal_session_info);
    std::string id;
    uint64_t most = 0;

    bench::require(wal_session_cursor_open(store, nullptr, &list, nullptr) == WAL_OK, "no list");
    while (wal_session_cursor_next(list, &info, nullptr) == WAL_OK) {
        if (info.entries > most) {
            most = info.entries;
            id = bench::text(info.id);
        }
    }
    wal_session_cursor_close(list);
    return bench::open_session(store, id);
}

/* Reads the branch to its end; its payloads and ids where they are wanted. */
double replay(wal_session *session, std::string *payloads, std::vector<std::string> *ids)
{
    wal_entry_cursor *cursor = nullptr;
    wal_entry entry = WAL_INIT(wal_entry);

    bench::require(wal_entry_cursor_open(session, nullptr, &cursor, nullptr) == WAL_OK,
                   "no iterator");
    double begin = bench::now();
    while (wal_entry_cursor_next(cursor, &entry, nullptr) == WAL_OK) {
        if (payloads != nullptr) {
            *payloads += bench::text(entry.payload);
            ids->push_back(bench::text(entry.id));
        }
    }
    double gone = bench::now() - begin;
    wal_entry_cursor_close(cursor);
    return gone;
}

/* PATH: reads a compacted store. Payload bytes per second of a replay and of bare decompression,
 * and the median of reading by id. */
void read_back(const bench::arguments &given)
{
    wal_store *store = bench::open_store(given[0], WAL_OPEN_READ_ONLY);
    wal_session *session = open_longest(store);
    wal_entry_cursor *cursor = nullptr;
    wal_entry entry = WAL_INIT(wal_entry);
    std::vector<std::string> ids;
    std::string payloads;
    bench::series by_id;
    transcript random;

    transcript_init(&random, 5);
    replay(session, &payloads, &ids);
    /* The fastest of some passes in turns: they are short. */
    block_list blocks = compress(payloads);
    double gone = replay(session, nullptr, nullptr), bare = decompress(blocks);
    for (int i = 1; i < passes; i++) {
        gone = std::min(gone, replay(session, nullptr, nullptr));
        bare = std::min(bare, decompress(blocks));
    }
    bench::require(wal_entry_cursor_open(session, nullptr, &cursor, nullptr) == WAL_OK,
                   "no iterator");
    for (uint64_t i = 0; i < lookups; i++) {
        const std::string &id = ids[transcript_draw(&random, ids.size())];
        double begin = bench::now();

        bench::require(wal_entry_cursor_get(cursor, bench::slice(id), &entry, nullptr) == WAL_OK,
                       "an entry is missing");
        by_id.add(bench::now() - begin);
    }
    wal_entry_cursor_close(cursor);
    bench::answer({static_cast<double>(payloads.size()) / gone,
                   static_cast<double>(payloads.size()) / bare, by_id.median()});
    wal_session_close(session);
    bench::close_store(store);
}

/* --- measuring ---------------------------------------------------------- */

/* Bytes of files, compressed one by one: LZ4 HC in blocks, and gzip. */
void compress_files(const std::string &folder, double *lz4, double *gzip)
{
    for (const fs::directory_entry &entry : fs::recursive_directory_iterator(folder)) {
        if (!entry.is_regular_file() || entry.file_size() == 0) {
            continue;
        }
        std::string text = bench::read_file(entry.path().string());
        std::vector<char> out(compressBound(text.size()));
        uLongf size = out.size();

        for (size_t at = 0; at < text.size(); at += bare_block) {
            int part = static_cast<int>(std::min(bare_block, text.size() - at));
            std::vector<char> to(static_cast<size_t>(LZ4_compressBound(part)));

            *lz4 += LZ4_compress_HC(text.data() + at, to.data(), part, static_cast<int>(to.size()),
                                    level);
        }
        bench::require(compress2(reinterpret_cast<Bytef *>(out.data()), &size,
                                 reinterpret_cast<const Bytef *>(text.data()), text.size(),
                                 6) == Z_OK,
                       "gzip failed");
        *gzip += static_cast<double>(size);
    }
}

void report_size(const std::string &name, const std::string &source, bench::wanted wanted_before)
{
    bench::folder place;
    std::string path = place / "store";
    double bytes = bytes_below(source, false), lz4 = 0, gzip = 0;
    std::string against = bench::mebibytes(bytes);

    import(path, source);
    double before = bytes_below(path, true);
    bench::run_child("gc", {path, std::to_string(UINT64_MAX)});
    double after = bytes_in_use(path);
    double on_disk = bytes_below(path, true);
    compress_files(source, &lz4, &gzip);
    bench::report({name + ", store in use after gc, to the source", bench::mebibytes(after),
                   against, after / bytes, bench::wanted::at_most, 0.45, "x"});
    bench::report({name + ", store on disk after gc, to the source", bench::mebibytes(on_disk),
                   against, on_disk / bytes, bench::wanted::nothing, 0, "x"});
    bench::report({name + ", store on disk before gc, to the source", bench::mebibytes(before),
                   against, before / bytes, wanted_before, 1.1, "x"});
    bench::report({name + ", bare LZ4 HC in 64 KiB, to the source", bench::mebibytes(lz4), against,
                   lz4 / bytes, bench::wanted::nothing, 0, "x"});
    bench::report({name + ", gzip, to the source", bench::mebibytes(gzip), against, gzip / bytes,
                   bench::wanted::nothing, 0, "x"});
}

void sizes(benchmark::State &state)
{
    const char *fixtures = getenv("AGENTWAL_FIXTURES");
    bench::folder place;

    for (auto _ : state) {
        double begin = bench::now();

        make_files(place / "made", source_size());
        report_size("compact, made sessions", place / "made", bench::wanted::at_most);
        if (fixtures != nullptr && fixtures[0] != '\0') {
            /* Some MB: a preallocated segment weighs more. */
            report_size("compact, fixtures", fixtures, bench::wanted::nothing);
        } else {
            bench::report_skipped("compact, fixtures", "AGENTWAL_FIXTURES is not set");
        }
        state.SetIterationTime(bench::now() - begin);
    }
}

void speed(benchmark::State &state)
{
    bench::folder place;
    bench::series rates, bares, replays, bare_replays, by_id, memory;

    make_files(place / "made", source_size());
    import(place / "full", place / "made");
    for (auto _ : state) {
        copy_store(place / "full", place / "store");
        double bare = bench::run_child("bare_loop", {place / "store", place / "out"})[0];
        std::vector<double> results =
            bench::run_child("gc", {place / "store", std::to_string(UINT64_MAX)});
        std::vector<double> read = bench::run_child("read_back", {place / "store"});

        rates.add(results[1] / results[0]);
        bares.add(results[1] / bare);
        memory.add(results[2]);
        replays.add(read[0]);
        bare_replays.add(read[1]);
        by_id.add(read[2]);
        state.SetIterationTime(results[0]);
    }
    bench::report_ratios("compact, no limit, to a loop that reads, verifies, LZ4, writes, syncs",
                         bench::megabytes_per_second(rates.median()),
                         bench::megabytes_per_second(bares.median()), rates.over(bares),
                         bench::wanted::at_least, 0.6);
    bench::report_ratios("replay, compacted, payloads, to LZ4 decompression",
                         bench::gigabytes_per_second(replays.median()),
                         bench::gigabytes_per_second(bare_replays.median()),
                         replays.over(bare_replays), bench::wanted::at_least, 0.7);
    bench::report({"read by id, compacted, warm", bench::micros(by_id.median()), "",
                   by_id.median() * 1e6, bench::wanted::at_most, 15, "us"});
    bench::report({"compact, anonymous memory", bench::mebibytes(memory.median()), "",
                   memory.median() / (1 << 20), bench::wanted::at_most, 96, "MiB"});
}

void latency(benchmark::State &state)
{
    bench::folder place;
    bench::series with, without;

    make_files(place / "made", source_size());
    import(place / "full", place / "made");
    for (auto _ : state) {
        copy_store(place / "full", place / "store");
        std::vector<double> meanwhile =
            bench::run_child("append_meanwhile", {place / "store", "0"});
        copy_store(place / "full", place / "store");
        std::vector<double> alone =
            bench::run_child("append_meanwhile", {place / "store", std::to_string(meanwhile[3])});

        with.add(meanwhile[0]);
        without.add(alone[0]);
        state.SetIterationTime(meanwhile[3]);
    }
    bench::report_sync_ratios("durable appends, 4 threads, p99 while another process compacts",
                              bench::micros(with.median()), bench::micros(without.median()),
                              with.over(without), bench::wanted::at_most, 1.5);
}

/* Writes and deletes ten times what stays, and compacts after each tenth. */
void churn(benchmark::State &state)
{
    bench::folder place;
    std::string path = place / "store";
    bench::source source(7);
    double most = 0, live = 0;

    make_files(place / "made", source_size() / 10);
    import(path, place / "made");
    bench::run_child("gc", {path, std::to_string(UINT64_MAX)});
    live = bytes_in_use(path);
    for (auto _ : state) {
        double begin = bench::now();

        for (uint64_t round = 0; round < 10; round++) {
            wal_store *store = bench::open_store(path, 0);
            std::string id = bench::number_id("gone", round);
            wal_session *session = bench::create_session(store, id, "/work");

            bench::fill_session(session, 0, source_size() / 10 / 2048, 2048, source);
            bench::require(wal_session_delete(session, nullptr) == WAL_OK, "cannot delete");
            wal_session_close(session);
            bench::close_store(store);
            bench::run_child("gc", {path, std::to_string(UINT64_MAX)});
            most = std::max(most, bytes_below(path, true));
        }
        state.SetIterationTime(bench::now() - begin);
    }
    bench::report({"ten times a store written and deleted, on disk after gc",
                   bench::mebibytes(most), bench::mebibytes(live), most / live,
                   bench::wanted::at_most, 1.5, "x"});
}

/* Sessions of 20 entries. */
void memory(benchmark::State &state)
{
    const uint64_t sessions = bench::pick<uint64_t>(20000, 50000, 1000000);
    bench::folder place;
    std::string path = place / "store";
    bench::source source(11);
    wal_store *store = bench::open_store(path);

    for (uint64_t i = 0; i < sessions; i++) {
        wal_session *session =
            bench::create_session(store, bench::number_id("session", i), "/work");

        bench::fill_session(session, 0, 20, 60, source);
        wal_session_close(session);
    }
    bench::close_store(store);
    for (auto _ : state) {
        std::vector<double> results = bench::run_child("gc", {path, std::to_string(UINT64_MAX)});

        bench::report(
            {"compact " + std::to_string(sessions) + " sessions of 20 entries, anonymous memory",
             bench::mebibytes(results[2]), "", results[2] / (1 << 20), bench::wanted::at_most, 96,
             "MiB"});
        state.SetIterationTime(results[0]);
    }
}

void setup()
{
    int turns = bench::pick(5, 5, 9);

    bench::add("compact/size", 1, sizes);
    bench::add("compact/speed", turns, speed);
    bench::add("compact/latency", turns, latency);
    bench::add("compact/churn", 1, churn);
    bench::add("compact/memory", 1, memory);
}

} // namespace

int main(int argc, char **argv)
{
    return bench::run(argc, argv, setup,
                      {{"gc", gc},
                       {"bare_loop", bare_loop},
                       {"append_meanwhile", append_meanwhile},
                       {"read_back", read_back}});
}
