/*
 * bench_bytes.cc - how many bytes does the log take for a byte of payload? Durable appends of
 * entries as generated, by one thread and by four, until several segments are full; the frames,
 * commits and indexes of the log and the files next to it count, room that is not yet written does
 * not.
 */
#include <sys/stat.h>

#include "bench/peers/agentwal.h"
#include "bench/writer_pool.h"

namespace
{

const double steps = 0.2; /* seconds between two looks at the log */

double index_bytes(const std::string &store)
{
    double bytes = 0;

    for (const std::string &name : bench::names(store + "/index")) {
        struct stat facts;

        bench::require(stat((store + "/index/" + name).c_str(), &facts) == 0, "stat failed");
        bytes += static_cast<double>(facts.st_size);
    }
    return bytes;
}

void log_bytes(benchmark::State &state, size_t threads, double target)
{
    const double wanted = bench::pick(8e6, 100e6, 500e6);
    std::vector<std::vector<std::string>> payloads =
        bench::writer_payloads(bench::shapes[0], threads);
    bench::series ratios;
    double payload = 0, log = 0;

    for (auto _ : state) {
        bench::folder place;
        std::string path = place / "store";
        bench::writer_pool writer_pool(bench::engine_kind(bench::guarantee::durable), path, threads,
                                       payloads);
        double begin = bench::now();

        while (writer_pool.sum(&bench::repetition::bytes) < wanted) {
            writer_pool.run_for(steps);
        }
        state.SetIterationTime(bench::now() - begin);
        payload = writer_pool.sum(&bench::repetition::bytes);
        writer_pool.check();
        wal_store *store = bench::open_store(path, WAL_OPEN_READ_ONLY);
        log = static_cast<double>(bench::store_status(store).log_bytes) + index_bytes(path);
        bench::close_store(store);
        ratios.add(log / payload);
    }
    bench::report_ratios("log with indexes to payloads, " + std::to_string(threads) +
                             (threads == 1 ? " writer" : " writers"),
                         bench::mebibytes(log), bench::mebibytes(payload), ratios,
                         bench::wanted::at_most, target);
}

void setup()
{
    int turns = bench::pick(5, 5, 5);

    bench::add("bytes/1 writer", turns, [](benchmark::State &state) { log_bytes(state, 1, 1.20); });
    bench::add("bytes/4 writers", turns,
               [](benchmark::State &state) { log_bytes(state, 4, 1.10); });
}

} // namespace

int main(int argc, char **argv)
{
    return bench::run(argc, argv, setup, {});
}
