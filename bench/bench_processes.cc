/*
 * bench_processes.cc - what do processes lose by sharing one store? Durable appends of 8 processes
 * on one store are held against as many threads in one process; those of 1, 2, 4 and 8 processes
 * against what agents do without a store: a JSONL file for each thread, written and synced line by
 * line.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

#include "bench/harness/harness.h"

namespace
{

const uint64_t seed = 20260101;
const size_t apart = 61; /* payloads, from one thread to the next */
const auto glance = std::chrono::milliseconds(1);
const double give_up_s = 60; /* seconds until a process gives up */
const double lead = 0.01;    /* seconds from the shot to the start */

/* A number of processes with a number of threads each. */
struct process_load {
    const char *child; /* what each process does */
    int processes;
    int threads;
};

const process_load one_process = {"store", 1, 32};
const process_load eight_by_four = {"store", 8, 4};
const process_load files_by_four = {"files", 8, 4};

/* --- one start for all --------------------------------------------------- */

/* A page in a file that the processes share. */
class start
{
  public:
    explicit start(const std::string &path)
    {
        int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        void *at;

        bench::require(file >= 0 && ftruncate(file, sizeof(shared)) == 0, "cannot make " + path);
        at = mmap(nullptr, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        bench::require(at != MAP_FAILED, "cannot map " + path);
        close(file);
        page = static_cast<shared *>(at);
    }
    ~start()
    {
        munmap(page, sizeof(shared));
    }
    start(const start &) = delete;
    start &operator=(const start &) = delete;

    /* For the parent: all begin when this number is ready. */
    void release(int processes)
    {
        while (page->ready != processes) {
            std::this_thread::sleep_for(glance);
        }
        page->begin = bench::now() + lead;
    }
    /* For a child: when it is to begin. */
    double wait()
    {
        double limit = bench::now() + give_up_s;

        page->ready++;
        while (page->begin == 0) {
            bench::require(bench::now() < limit, "nobody gives the start");
            std::this_thread::sleep_for(glance);
        }
        return page->begin;
    }

  private:
    struct shared {
        std::atomic<int> ready;
        std::atomic<double> begin;
    };
    shared *page;
};

/* --- the children ------------------------------------------------------- */

/* PLACE START NAME THREADS SHAPE SECONDS: the arguments of a child. */
struct task {
    std::string place;
    std::string start; /* the file */
    std::string name;  /* its own, in this store or folder */
    size_t threads;
    bench::shape shape;
    double duration;

    explicit task(const bench::arguments &given)
        : place(given[0]), start(given[1]), name(given[2]), threads(std::stoul(given[3])),
          shape(bench::shapes[std::stoul(given[4])]), duration(std::stod(given[5]))
    {
    }
};

/* Appends the payload so and so manyth. */
using appender = std::function<void(const std::string &, uint64_t)>;

/* Runs each appender in a thread for the duration; how often they did it. */
double run_threads(const task &task, const std::vector<appender> &appenders)
{
    const std::vector<std::string> payloads = bench::make_payloads(task.shape, seed);
    std::vector<std::thread> threads;
    std::atomic<uint64_t> done = {0};

    double begin = start(task.start).wait();
    for (size_t i = 0; i < task.threads; i++) {
        threads.emplace_back([&, i] {
            uint64_t own = 0;

            std::this_thread::sleep_for(std::chrono::duration<double>(begin - bench::now()));
            while (bench::now() < begin + task.duration) {
                /* Each thread begins elsewhere. */
                appenders[i](payloads[(own + i * apart) % payloads.size()], own);
                own++;
            }
            done += own;
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    return static_cast<double>(done);
}

/* Each thread has a session of the store. Answers acknowledgements, groups and syncs. */
void append_to_store(const bench::arguments &given)
{
    task task(given);
    wal_store *store = bench::open_store(task.place);
    std::vector<wal_session *> sessions;
    std::vector<appender> appenders;

    for (size_t i = 0; i < task.threads; i++) {
        wal_session *session = bench::create_session(store, bench::number_id(task.name.c_str(), i));

        sessions.push_back(session);
        appenders.push_back([session](const std::string &payload, uint64_t number) {
            std::string id = bench::number_id("e", number);
            wal_entry entry = bench::entry(id, payload);

            bench::append(session, &entry, 1);
        });
    }
    wal_store_info before = bench::store_status(store);
    double done = run_threads(task, appenders);
    wal_store_info after = bench::store_status(store);
    bench::answer({done, static_cast<double>(after.groups - before.groups),
                   static_cast<double>(after.syncs - before.syncs)});
    for (wal_session *session : sessions) {
        wal_session_close(session);
    }
    bench::close_store(store);
}

/* Each thread has a file. */
void append_to_files(const bench::arguments &given)
{
    task task(given);
    std::vector<int> files;
    std::vector<appender> appenders;

    for (size_t i = 0; i < task.threads; i++) {
        std::string path = task.place + "/" + bench::number_id(task.name.c_str(), i) + ".jsonl";
        int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

        bench::require(file >= 0, "cannot make " + path);
        files.push_back(file);
        appenders.push_back([file](const std::string &payload, uint64_t number) {
            std::string line = "{\"id\":\"" + bench::number_id("e", number) +
                               "\",\"type\":\"message\",\"message\":" + payload + "}\n";

            bench::require(write(file, line.data(), line.size()) ==
                                   static_cast<ssize_t>(line.size()) &&
                               fdatasync(file) == 0,
                           "a line was not written");
        });
    }
    bench::answer({run_threads(task, appenders), 0, 0});
    for (int file : files) {
        close(file);
    }
}

/* --- a round ------------------------------------------------------------ */

struct outcome {
    double rate = 0;   /* acknowledgements per second */
    double groups = 0; /* for an acknowledgement */
    double syncs = 0;  /* for one, too */
};

/* All processes of the process_load at once, for a while. */
outcome measure(const process_load &process_load, size_t shape, const std::string &place, int round)
{
    const double duration = bench::pick(0.1, 0.5, 5.0);
    bench::folder own;
    std::string signal = own / "start";
    start start(signal);
    std::vector<std::vector<double>> answers(static_cast<size_t>(process_load.processes));
    std::vector<std::thread> threads;
    outcome total;

    for (int i = 0; i < process_load.processes; i++) {
        std::string name = std::string(process_load.child) + "-" +
                           std::to_string(process_load.processes) + "x" +
                           std::to_string(process_load.threads) + "-" + std::to_string(round) +
                           "-" + std::to_string(i);

        threads.emplace_back([&, i, name] {
            answers[static_cast<size_t>(i)] = bench::run_child(
                process_load.child, {place, signal, name, std::to_string(process_load.threads),
                                     std::to_string(shape), std::to_string(duration)});
        });
    }
    start.release(process_load.processes);
    for (std::thread &thread : threads) {
        thread.join();
    }
    double done = 0;
    for (const std::vector<double> &answer : answers) {
        done += answer[0];
        total.groups += answer[1];
        total.syncs += answer[2];
    }
    total.rate = done / duration;
    total.groups /= done;
    total.syncs /= done;
    return total;
}

/* --- the questions ------------------------------------------------------ */

std::string kind_of(size_t shape)
{
    return std::string(", ") + bench::shapes[shape].name;
}

void report(const std::string &question, const bench::series &measured,
            const bench::series &against, double target)
{
    bench::report_sync_ratios(question, bench::per_second(measured.median()),
                              bench::per_second(against.median()), measured.over(against),
                              target > 0 ? bench::wanted::at_least : bench::wanted::nothing,
                              target);
}

void four_threads(benchmark::State &state, size_t shape)
{
    bench::folder place;
    std::string store = place / "store";
    bench::series ones, fours, files, groups, syncs;
    int round = 0;

    bench::close_store(bench::open_store(store));
    for (auto _ : state) {
        outcome one = measure(one_process, shape, store, round);
        outcome four = measure(eight_by_four, shape, store, round);

        files.add(measure(files_by_four, shape, place.path(), round).rate);
        ones.add(one.rate);
        fours.add(four.rate);
        groups.add(four.groups);
        syncs.add(four.syncs);
        round++;
        state.SetIterationTime(1 / four.rate);
    }

    std::string kind = kind_of(shape);
    report("8 processes x 4 threads to 32 threads" + kind, fours, ones, 0.5);
    report("8 processes x 4 threads to 32 JSONL files" + kind, fours, files, 1);
    bench::report({"8 processes x 4 threads, groups for an entry" + kind, "", "", groups.median(),
                   bench::wanted::nothing, 0, "groups"});
    bench::report({"8 processes x 4 threads, syncs for an entry" + kind, "", "", syncs.median(),
                   bench::wanted::nothing, 0, "syncs"});
}

void one_thread(benchmark::State &state, size_t shape, int processes)
{
    bench::folder place;
    std::string store = place / "store";
    bench::series stores, files;
    int round = 0;

    bench::close_store(bench::open_store(store));
    for (auto _ : state) {
        stores.add(measure({"store", processes, 1}, shape, store, round).rate);
        files.add(measure({"files", processes, 1}, shape, place.path(), round).rate);
        round++;
        state.SetIterationTime(1 / stores.median());
    }

    std::string number = std::to_string(processes);
    report(number +
               (processes == 1 ? " process x 1 thread to 1 JSONL file"
                               : " processes x 1 thread to " + number + " JSONL files") +
               kind_of(shape),
           stores, files, processes == 8 ? 1 : 0);
}

void setup()
{
    const int turns = bench::pick(5, 5, 9);

    /* Shortly, only entries as generated. */
    for (size_t shape = 0; shape < bench::pick<size_t>(1, 2, 2); shape++) {
        std::string name = std::string("processes/") + bench::shapes[shape].name;

        bench::add(name + "/8 x 4", turns,
                   [shape](benchmark::State &state) { four_threads(state, shape); });
        for (int processes : {1, 2, 4, 8}) {
            if (shape == 0 || processes == 8) {
                bench::add(name + "/" + std::to_string(processes) + " x 1", turns,
                           [=](benchmark::State &state) { one_thread(state, shape, processes); });
            }
        }
    }
}

} // namespace

int main(int argc, char **argv)
{
    return bench::run(argc, argv, setup, {{"store", append_to_store}, {"files", append_to_files}});
}
