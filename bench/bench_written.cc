/*
 * bench_written.cc - what does an append cost that only has to survive a killed process? Four
 * threads write 64 MiB in a burst; that is held against bare writes of as much to new files, one
 * for each thread, and against what agents use instead. Then the processor time that a submission
 * takes of its caller, against copying and checksumming its bytes.
 */
#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "bench/writer_pool.h"

namespace
{

const size_t threads = 4;
const uint64_t burst = 64 << 20;
const int block = 200; /* submissions: they fit the queue, 256 */

/* --- bursts ------------------------------------------------------------- */

/* Entries of one thread, written to a new file by one call each. */
void write_new_file(const std::string &path, const std::vector<std::string> &payloads,
                    uint64_t size)
{
    int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    uint64_t done = 0;

    bench::require(file >= 0, "cannot make " + path);
    for (size_t i = 0; done < size; i++) {
        const std::string &payload = payloads[i % payloads.size()];

        bench::require(write(file, payload.data(), payload.size()) ==
                           static_cast<ssize_t>(payload.size()),
                       "a bare write failed");
        done += payload.size();
    }
    close(file);
}

/* Bytes per second. */
double bare_burst(const std::vector<std::vector<std::string>> &payloads)
{
    bench::folder place;
    std::vector<std::thread> all;
    double begin = bench::now();

    for (size_t i = 0; i < threads; i++) {
        all.emplace_back(
            [&, i] { write_new_file(place / std::to_string(i), payloads[i], burst / threads); });
    }
    for (std::thread &thread : all) {
        thread.join();
    }
    return static_cast<double>(burst) / (bench::now() - begin);
}

/* A burst of a peer into a store that is new, read back once. */
double peer_burst(const bench::peer_kind &kind,
                  const std::vector<std::vector<std::string>> &payloads, bool check)
{
    bench::folder place;
    bench::writer_pool writer_pool(kind, place / "store", threads, payloads);
    double rate = writer_pool.run_bytes(burst).throughput;

    if (check) {
        writer_pool.check();
    }
    return rate;
}

struct candidate {
    const bench::peer_kind *kind;
    bench::series rates;
};

/* All that guarantee no more than the engine does here; shortly, the files. */
std::vector<candidate> candidates()
{
    std::vector<candidate> all;

    for (const bench::peer_kind &kind : bench::peer_kinds()) {
        if (kind.guarantee == bench::guarantee::written &&
            (bench::asked() != bench::run_length::quick || kind.name == "jsonl-open-written" ||
             kind.name == "jsonl-shared-written")) {
            all.push_back({&kind, {}});
        }
    }
    return all;
}

void bursts(benchmark::State &state)
{
    std::vector<std::vector<std::string>> payloads =
        bench::writer_payloads(bench::shapes[0], threads);
    bench::folder place;
    bench::writer_pool engine(bench::engine_kind(bench::guarantee::written), place / "store",
                              threads, payloads);
    bench::writer_pool queue(bench::engine_kind(bench::guarantee::queued), place / "queue", threads,
                             payloads);
    std::vector<candidate> peers = candidates();
    bench::series rates, queued, bares;
    bool first = true;

    engine.run_bytes(burst);
    queue.run_bytes(burst);
    for (auto _ : state) {
        bench::sync_file_system(place.path());
        rates.add(engine.run_bytes(burst).throughput);
        bench::sync_file_system(place.path());
        queued.add(queue.run_bytes(burst).throughput);
        bench::sync_file_system(place.path());
        bares.add(bare_burst(payloads));
        for (candidate &peer : peers) {
            bench::sync_file_system(place.path());
            peer.rates.add(peer_burst(*peer.kind, payloads, first));
        }
        first = false;
        state.SetIterationTime(static_cast<double>(burst) / rates.median());
    }
    engine.check();
    queue.check();

    const std::string name = "written append, 4 threads, 64 MiB, to ";
    std::string measured = bench::megabytes_per_second(rates.median());
    bench::report_ratios(name + "write(2) of new files", measured,
                         bench::megabytes_per_second(bares.median()), rates.over(bares),
                         bench::wanted::at_least, 0.5);
    bench::report_ratios("queued append and a flush, 4 threads, 64 MiB, to "
                         "write(2) of new files",
                         bench::megabytes_per_second(queued.median()),
                         bench::megabytes_per_second(bares.median()), queued.over(bares),
                         bench::wanted::nothing, 0);
    for (candidate &peer : peers) {
        bool shared = peer.kind->name == "jsonl-shared-written";

        bench::report_ratios(
            name + peer.kind->name, measured, bench::megabytes_per_second(peer.rates.median()),
            rates.over(peer.rates), shared ? bench::wanted::at_least : bench::wanted::nothing, 1);
    }
}

/* --- submitting --------------------------------------------------------- */

/* What a caller hands over has just been made and is not in a cache that its bytes were copied to
 * before: each entry of a repetition is another one, of more than the caches hold. */
const size_t corpus_size = 64 << 20;
const size_t entry_size = 1024;

struct corpus {
    std::vector<std::string> payloads;
    size_t next = 0; /* goes round */

    /* Which entries are the next block. */
    std::pair<size_t, size_t> take()
    {
        size_t first = next + block > payloads.size() ? 0 : next;

        next = first + block;
        return {first, next};
    }
};

corpus make_corpus()
{
    corpus made;
    bench::source source(7);

    for (size_t i = 0; i < corpus_size / entry_size; i++) {
        made.payloads.push_back(source.message(entry_size));
    }
    return made;
}

double own_seconds()
{
    timespec used;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

/*
 * Submits a block with a ticket for each, or queues it without; processor seconds of the caller for
 * an entry. The clock is read around the block, for it costs as much as an entry. The block fits
 * the queue, whose limit is 256 by default: nobody waits for room in it. The committer works at the
 * same time, as always; what it holds the caller up with counts, and so does giving the tickets
 * back.
 */
double submit_block(wal_session *session, const corpus &corpus, std::pair<size_t, size_t> range,
                    uint64_t *count, bool tickets)
{
    std::vector<std::string> ids(block);
    std::vector<wal_entry> entries;
    std::vector<wal_ticket *> made(block);
    wal_append_options options = {};
    wal_status status = WAL_OK;

    for (size_t i = 0; i < block; i++) {
        ids[i] = bench::number_id("e", (*count)++);
        entries.push_back(bench::entry(ids[i], corpus.payloads[range.first + i]));
    }
    options.struct_size = sizeof(options);
    options.durability = WAL_QUEUED;
    double begin = own_seconds();
    for (size_t i = 0; i < block && status == WAL_OK; i++) {
        status = tickets ? wal_submit(session, &entries[i], 1, &options, &made[i], nullptr)
                         : wal_append(session, &entries[i], 1, &options, nullptr, nullptr);
    }
    for (wal_ticket *ticket : made) {
        wal_ticket_destroy(ticket);
    }
    double gone = own_seconds() - begin;
    bench::require(status == WAL_OK, "cannot submit");
    return gone / block;
}

/* Copies and checksums a block; processor seconds for an entry. The copies go where those of the
 * last block went, as the library's do. */
double copy_block(const corpus &corpus, std::pair<size_t, size_t> range)
{
    static std::vector<char> buffer(block * 2 * entry_size);
    uint32_t sum = 0;
    size_t at = 0;

    double begin = own_seconds();
    for (size_t i = range.first; i < range.second; i++) {
        const std::string &payload = corpus.payloads[i];

        memcpy(&buffer[at], payload.data(), payload.size());
        sum ^= bench::system_crc(payload.data(), payload.size());
        at += payload.size();
    }
    benchmark::DoNotOptimize(buffer.data());
    benchmark::DoNotOptimize(sum);
    return (own_seconds() - begin) / block;
}

void submissions(benchmark::State &state, bool tickets)
{
    static corpus corpus = make_corpus();
    const int blocks = bench::pick(20, 100, 500);
    bench::folder place;
    wal_store *store = bench::open_store(place / "store");
    wal_session *session = bench::create_session(store, "s");
    bench::series times, bares;
    uint64_t count = 0;

    for (auto _ : state) {
        bench::series repetition, bare;

        for (int i = 0; i < blocks; i++) {
            repetition.add(submit_block(session, corpus, corpus.take(), &count, tickets));
            bench::require(wal_flush(store, nullptr) == WAL_OK, "flush");
            bare.add(copy_block(corpus, corpus.take()));
        }
        times.add(repetition.median());
        bares.add(bare.median());
        state.SetIterationTime(repetition.median());
    }
    wal_session_close(session);
    bench::close_store(store);
    bench::report_ratios(std::string("submitting 1 KiB, processor time of the caller, ") +
                             (tickets ? "with a ticket" : "queued"),
                         bench::micros(times.median()),
                         bench::micros(bares.median()) + " (memcpy, CRC)", times.over(bares),
                         bench::wanted::at_most, 2);
}

void setup()
{
    bench::add("written/bursts", bench::pick(5, 5, 7), bursts);
    bench::add("written/submit", bench::pick(5, 9, 9),
               [](benchmark::State &state) { submissions(state, true); });
    bench::add("written/queue", bench::pick(5, 9, 9),
               [](benchmark::State &state) { submissions(state, false); });
}

} // namespace

int main(int argc, char **argv)
{
    return bench::run(argc, argv, setup, {});
}
