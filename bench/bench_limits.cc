/*
 * bench_limits.cc - what does this machine do without any engine? Copying, checksums, digests and
 * compression of entries, writes, and syncs: what the other programs hold the engine against.
 */
#include <fcntl.h>
#include <lz4.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <cstring>

#include "bench/harness/harness.h"

namespace
{

const uint64_t seed = 20260101;

/* What is done to an entry; `out` has room for twice the entry. */
using task = std::function<void(const std::string &entry, char *out)>;

std::vector<std::string> make_entries()
{
    bench::source source(seed);
    std::vector<std::string> entries;

    for (int i = 0; i < 2000; i++) {
        entries.push_back(source.mixed());
    }
    return entries;
}

/* Bytes per second. */
void measure(benchmark::State &state, const std::string &name, const task &work)
{
    const int rounds = bench::pick(2, 10, 50);
    std::vector<std::string> entries = make_entries();
    std::vector<char> out(64 << 10);
    bench::series rates;

    for (auto _ : state) {
        double bytes = 0;
        double begin = bench::now();

        for (int i = 0; i < rounds; i++) {
            for (const std::string &entry : entries) {
                work(entry, out.data());
                bytes += static_cast<double>(entry.size());
            }
        }
        double gone = bench::now() - begin;
        benchmark::DoNotOptimize(out.data());
        rates.add(bytes / gone);
        state.SetIterationTime(gone);
    }
    bench::report({"bare limit, " + name, bench::gigabytes_per_second(rates.median()), "",
                   std::nan(""), bench::wanted::nothing, 0, ""});
}

void digest(const std::string &entry, char *out)
{
    bench::require(EVP_Digest(entry.data(), entry.size(), reinterpret_cast<unsigned char *>(out),
                              nullptr, EVP_sha256(), nullptr) == 1,
                   "no digest");
}

int compress(const std::string &entry, char *out)
{
    return LZ4_compress_default(entry.data(), out, static_cast<int>(entry.size()), 64 << 10);
}

void compression(benchmark::State &state)
{
    std::vector<std::string> entries = make_entries();
    std::vector<char> out(64 << 10);
    double raw = 0, packed = 0;

    measure(state, "LZ4 of an entry",
            [](const std::string &entry, char *to) { compress(entry, to); });
    for (const std::string &entry : entries) {
        raw += static_cast<double>(entry.size());
        packed += compress(entry, out.data());
    }
    bench::report({"entries as generated, by LZ4 one by one", "", "", raw / packed,
                   bench::wanted::nothing, 0, "times smaller"});
}

/* Entries to a new file, one call each. */
void writes(benchmark::State &state)
{
    const int rounds = bench::pick(4, 10, 50);
    std::vector<std::string> entries = make_entries();
    bench::folder place;
    bench::series rates;

    for (auto _ : state) {
        std::string path = place / "new";
        double bytes = 0;
        double begin = bench::now();
        int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600);

        bench::require(file >= 0, "cannot make " + path);
        for (int i = 0; i < rounds; i++) {
            for (const std::string &entry : entries) {
                bench::require(write(file, entry.data(), entry.size()) ==
                                   static_cast<ssize_t>(entry.size()),
                               "a bare write failed");
                bytes += static_cast<double>(entry.size());
            }
        }
        close(file);
        double gone = bench::now() - begin;
        rates.add(bytes / gone);
        state.SetIterationTime(gone);
        bench::remove_all(path);
    }
    bench::report({"bare limit, write(2) of each entry to a new file",
                   bench::gigabytes_per_second(rates.median()), "", std::nan(""),
                   bench::wanted::nothing, 0, ""});
}

/* A small write and its sync, in turns with the other way to do it. */
void syncs(benchmark::State &state)
{
    const int count = bench::pick(100, 300, 1000);
    bench::folder place;
    bench::raw_log calls(place / "calls", 16 << 20);
    bench::raw_log flags(place / "flags", 16 << 20, bench::synced_by::flag);
    bench::series by_call, by_flag;

    for (auto _ : state) {
        bench::series call, flag;

        for (int i = 0; i < count; i++) {
            double begin = bench::now();

            calls.append(2048);
            double between = bench::now();
            flags.append(2048);
            call.add(between - begin);
            flag.add(bench::now() - between);
        }
        by_call.add(call.median());
        by_flag.add(flag.median());
        state.SetIterationTime(call.median());
    }
    bench::report_sync_ratios("bare limit, 2 KiB: RWF_DSYNC to pwrite + fdatasync",
                              bench::micros(by_flag.median()), bench::micros(by_call.median()),
                              by_flag.over(by_call), bench::wanted::nothing, 0);
}

void add(const std::string &name, const task &work)
{
    bench::add("limits/" + name, bench::pick(5, 9, 9),
               [name, work](benchmark::State &state) { measure(state, name, work); });
}

void setup()
{
    add("memcpy",
        [](const std::string &entry, char *out) { memcpy(out, entry.data(), entry.size()); });
    add(std::string("CRC-32 by ") + bench::library_crc_name,
        [](const std::string &entry, char *out) {
            uint32_t sum = bench::system_crc(entry.data(), entry.size());

            memcpy(out, &sum, sizeof(sum));
        });
    add("CRC-32 by zlib", [](const std::string &entry, char *out) {
        uint32_t sum = bench::zlib_crc(entry.data(), entry.size());

        memcpy(out, &sum, sizeof(sum));
    });
    add("CRC-32 by agentwal", [](const std::string &entry, char *out) {
        uint32_t sum = bench::own_crc(entry.data(), entry.size());

        memcpy(out, &sum, sizeof(sum));
    });
    add("SHA-256", digest);
    bench::add("limits/LZ4", bench::pick(5, 9, 9), compression);
    bench::add("limits/writes", bench::pick(5, 9, 9), writes);
    bench::add("limits/syncs", bench::pick(5, 9, 9), syncs);
}

} // namespace

int main(int argc, char **argv)
{
    return bench::run(argc, argv, setup, {});
}
