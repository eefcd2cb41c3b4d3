/*
 * harness.h - what the benchmarks share: scales, temporary folders, entries from a seed, bare
 * limits, fresh processes, and the rows of the table.
 *
 * Each program answers one question. It measures the engine and the bare limit in turns, so that
 * both see the same machine, and reports the median of the ratios of the turns.
 */
#ifndef AGENTWAL_BENCH_HARNESS_H
#define AGENTWAL_BENCH_HARNESS_H

#include <benchmark/benchmark.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "agentwal.h"

namespace bench
{

enum class run_length { quick, normal, complete };

/* How much the caller asked for: --quick, nothing, --long. */
run_length asked();

/* "quick", "normal" or "long". */
std::string asked_name();

/* The value for what was asked. */
template <typename T> T pick(T quick, T normal, T complete)
{
    return asked() == run_length::quick ? quick : asked() == run_length::normal ? normal : complete;
}

/* Seconds on the monotonic clock. */
double now();
/* Processor seconds of this process, user and system. */
double used_seconds();

/* Anonymous memory of this process, in bytes. */
double anonymous_memory();

/* Ends the program with a message when ok is false. */
void require(bool ok, const std::string &what);

/* A measure that is taken several times. */
class series
{
  public:
    void add(double value);
    double quantile(double part) const;
    double median() const;
    size_t count() const;
    /* Each value by that of the other in the same repetition. */
    series over(const series &other) const;

  private:
    std::vector<double> values;
};

/* --- files -------------------------------------------------------------- */

/* A folder in TMPDIR, or next to the program, removed with all it holds. */
class folder
{
  public:
    folder();
    ~folder();
    folder(const folder &) = delete;
    folder &operator=(const folder &) = delete;
    std::string operator/(const std::string &name) const;
    const std::string &path() const;

  private:
    std::string name;
};

uint64_t free_bytes(const std::string &path);

/* The names in a folder, sorted. */
std::vector<std::string> names(const std::string &path);

void remove_all(const std::string &path);

/* Puts the bytes of a file into another; the inode of `to` stays when it is there. */
void copy_file(const std::string &from, const std::string &to);

/* Makes a file or a folder durable, by fsync. */
void sync_file(const std::string &path);

/* Writes back what is dirty in the file system of path. */
void sync_file_system(const std::string &path);

std::string read_file(const std::string &path);

/* How a bare write reaches the device: by fdatasync after it, or by a flag of the write. */
enum class synced_by { call, flag };

/* A file that was filled with zeros and synced: what an append is held against. Writes go on from
 * the front when the end is reached. */
class raw_log
{
  public:
    raw_log(const std::string &path, uint64_t size, synced_by way = synced_by::call);
    ~raw_log();
    raw_log(const raw_log &) = delete;
    raw_log &operator=(const raw_log &) = delete;
    /* Writes a number of bytes after the last ones and syncs them. */
    void append(uint64_t size);

  private:
    int file;
    synced_by way;
    uint64_t capacity;
    uint64_t offset = 0;
    std::string bytes;
};

/* A file mapped for reading; each is a fresh map. */
class mapped_file
{
  public:
    mapped_file(const std::string &path, bool populate);
    ~mapped_file();
    mapped_file(const mapped_file &) = delete;
    mapped_file &operator=(const mapped_file &) = delete;
    const uint8_t *data() const;
    size_t size() const;

  private:
    void *bytes;
    size_t length;
};

/* The checksum of a bare pass: libdeflate's, where it was found, else zlib's. Next to it that of
 * zlib, and that of agentwal. */
uint32_t system_crc(const void *data, size_t size);
extern const char *const library_crc_name;
uint32_t zlib_crc(const void *data, size_t size);
uint32_t own_crc(const void *data, size_t size);

/* The median time of a small write and its sync in the temporary folder. */
double sync_cost();

/* A sync that is no sync (tmpfs): ratios to it say nothing. */
bool sync_is_free();

/* --- entries ------------------------------------------------------------ */

/* Payloads of JSON text: from one seed always the same. */
class source
{
  public:
    explicit source(uint64_t seed);
    uint64_t next(uint64_t bound);
    /* A message whose JSON text has about `size` bytes. */
    std::string message(size_t size);
    /* 60 % near 300 bytes, 30 % near 2 KiB, 10 % near 16 KiB. */
    std::string mixed();

  private:
    uint64_t state;
};

/* Entries of one kind. */
struct shape {
    const char *name;
    size_t fixed; /* bytes of each payload; 0: mixed */
};

extern const shape shapes[2];

/* Payloads made before the clock runs. */
std::vector<std::string> make_payloads(const shape &shape, uint64_t seed);

/* An id such as "e-1f". */
std::string number_id(const char *prefix, uint64_t number);

wal_slice slice(const std::string &text);
std::string text(const wal_slice &slice);

/* An entry of type message; the strings must outlive it. */
wal_entry entry(const std::string &id, const std::string &payload);

/* --- the engine --------------------------------------------------------- */

void check(wal_status status, const wal_error &error);

/* Opens, by default a store that is made when it is not there. */
wal_store *open_store(const std::string &path, uint32_t flags = WAL_OPEN_CREATE);
void close_store(wal_store *store);
wal_session *create_session(wal_store *store, const std::string &id,
                            const std::string &cwd = "/work");
wal_session *open_session(wal_store *store, const std::string &id);
wal_store_info store_status(wal_store *store);
void append(wal_session *session, const wal_entry *entries, uint32_t count,
            wal_durability durability = WAL_DURABLE);

/* --- fresh processes ---------------------------------------------------- */

using arguments = std::vector<std::string>;
using child = std::function<void(const arguments &)>;

/* Runs one of the program's children, by name, in a fresh process, and gives the numbers that it
 * printed. A child may kill itself. */
std::vector<double> run_child(const std::string &name, const arguments &arguments);

/* For a child: hands numbers to its parent. */
void answer(const std::vector<double> &numbers);

/* For a child: dies as by kill -9. */
[[noreturn]] void die();

/* --- the table ---------------------------------------------------------- */

enum class wanted { at_most, at_least, nothing };

/* A line of the table. Without something to hold it against or a target the text is empty, or the
 * sense is `nothing`. */
struct row {
    std::string question;
    std::string measured;
    std::string against; /* the bare limit, or a peer with its name */
    double ratio;
    wanted sense;
    double target;
    const char *unit;          /* of ratio and target: "x", "ms", ... */
    double low = std::nan(""); /* of the turns */
    double high = std::nan("");
};

void report(const row &row);

/* A row of the median of ratios. */
void report_ratios(const std::string &question, const std::string &measured,
                   const std::string &against, const series &ratios, wanted sense, double target);

/* The same for times or rates of syncs: no ratio where a sync is free. */
void report_sync_ratios(const std::string &question, const std::string &measured,
                        const std::string &against, const series &ratios, wanted sense,
                        double target);

/* A point of a line of a plot, in the units that report.py gives its axes. */
void plot(const std::string &plot, const std::string &line, double x, double y);

/* Says in the results, next to the rows, what this run does without. */
void report_skipped(const std::string &what, const std::string &why);

/* Looks whether the disk has room; leaves the benchmark out when it has not. */
bool has_room(benchmark::State &state, const std::string &what, const folder &place,
              uint64_t bytes);

/* Writes all rows and points, an object of JSON on each line, after what the file holds; without a
 * path the rows alone, as text, to the output. */
void write_results(const std::string &path);

std::string micros(double seconds);
std::string millis(double seconds);
std::string per_second(double rate);
std::string mebibytes(double bytes);
std::string megabytes_per_second(double rate);
std::string gigabytes_per_second(double rate);

/* Adds a benchmark that keeps its own time and runs a number of rounds: the rows that it reports
 * say how many. */
void add(const std::string &name, int turns, const std::function<void(benchmark::State &)> &body);
int current_repetitions();

/* The main function of each program: reads the arguments, runs a child when it is asked for one,
 * else calls `setup`, runs the benchmarks and prints the table. */
int run(int argc, char **argv, void (*setup)(), const std::map<std::string, child> &children);

} // namespace bench

#endif
