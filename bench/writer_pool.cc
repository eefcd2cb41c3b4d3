/*
 * writer_pool.cc - turns of appending with several threads.
 */
#include "bench/writer_pool.h"

#include <algorithm>
#include <condition_variable>
#include <fstream>
#include <limits>
#include <mutex>
#include <thread>

#include "bench/peers/agentwal.h"

namespace bench
{

namespace
{

const uint64_t seed = 20260101;

/* Bytes that this process caused to be sent to storage. */
double sent_bytes()
{
    std::ifstream facts("/proc/self/io");
    std::string word;
    double bytes = 0;

    while (facts >> word) {
        if (word == "write_bytes:") {
            facts >> bytes;
        }
    }
    return bytes;
}

std::string session_name(size_t number)
{
    return number_id("s", number);
}

/* All threads begin at once, when the last of them is there. */
class gate
{
  public:
    explicit gate(size_t count) : missing(count)
    {
    }
    void pass()
    {
        std::unique_lock<std::mutex> hold(mutex);

        if (--missing == 0) {
            all_arrived.notify_one();
        }
        opened.wait(hold, [this] { return is_open; });
    }
    void wait()
    {
        std::unique_lock<std::mutex> hold(mutex);

        all_arrived.wait(hold, [this] { return missing == 0; });
    }
    void open()
    {
        {
            std::lock_guard<std::mutex> hold(mutex);
            is_open = true;
        }
        opened.notify_all();
    }

  private:
    std::mutex mutex;
    std::condition_variable all_arrived;
    std::condition_variable opened;
    size_t missing;
    bool is_open = false;
};

} // namespace

std::vector<std::vector<std::string>> writer_payloads(const shape &shape, size_t threads)
{
    std::vector<std::vector<std::string>> all;

    for (size_t i = 0; i < threads; i++) {
        all.push_back(make_payloads(shape, seed + i));
    }
    return all;
}

writer_pool::writer_pool(const peer_kind &kind, const std::string &where, size_t threads,
                         const std::vector<std::vector<std::string>> &payloads)
    : own_kind(kind), path(where), store(kind.open(where)), writers(threads)
{
    for (size_t i = 0; i < threads; i++) {
        writers[i].session = store->create(session_name(i));
        writers[i].payloads = &payloads[i];
    }
}

void writer_pool::append(writer &one, double end)
{
    const std::vector<std::string> &payloads = *one.payloads;
    const std::string &payload = payloads[one.count % payloads.size()];
    double begin = now();

    one.session->append(one.count, payload);
    double done = now();
    one.times.push_back(done - begin);
    one.count++;
    one.bytes += payload.size();
    one.in_time += done <= end;
}

void writer_pool::add_repetition(repetition *total)
{
    series times;
    double in_time = 0;

    for (const writer &one : writers) {
        total->bytes += static_cast<double>(one.bytes);
        in_time += static_cast<double>(one.in_time);
        for (double time : one.times) {
            times.add(time);
            all_times.add(time);
        }
    }
    total->acks = static_cast<double>(times.count());
    total->rate = in_time / total->seconds;
    total->throughput = total->bytes / total->seconds;
    total->syncs /= total->acks;
    total->log /= total->acks;
    total->p50 = times.median();
    total->p99 = times.quantile(0.99);
    total->max = times.quantile(1);
    turns.push_back(*total);
}

/* For a number of seconds or, if they are infinite, as long as it takes. */
repetition writer_pool::run(const condition &more, double seconds)
{
    auto *engine = dynamic_cast<engine_peer *>(store.get());
    wal_store_info before = {}, after = {};
    std::vector<std::thread> threads;
    gate gate(writers.size());
    double begin = 0;
    repetition total;

    if (engine != nullptr) {
        before = engine->status();
    }
    for (writer &one : writers) {
        threads.emplace_back([&] {
            one.bytes = 0;
            one.in_time = 0;
            one.times.clear();
            gate.pass();
            while (more(one, begin)) {
                append(one, begin + seconds);
            }
        });
    }
    gate.wait();
    double sent = sent_bytes();
    begin = now();
    gate.open();
    for (std::thread &thread : threads) {
        thread.join();
    }
    store->flush();
    total.seconds = std::min(seconds, now() - begin);
    total.sent = sent_bytes() - sent;
    if (engine != nullptr) {
        after = engine->status();
        total.syncs = static_cast<double>(after.syncs - before.syncs);
        total.log = static_cast<double>(after.log_bytes - before.log_bytes);
    }
    add_repetition(&total);
    return total;
}

repetition writer_pool::run_for(double seconds)
{
    return run([seconds](const writer &, double begin) { return now() < begin + seconds; },
               seconds);
}

repetition writer_pool::run_bytes(uint64_t bytes)
{
    uint64_t part = bytes / writers.size();

    return run([part](const writer &one, double) { return one.bytes < part; },
               std::numeric_limits<double>::infinity());
}

const peer_kind &writer_pool::kind() const
{
    return own_kind;
}

const series &writer_pool::latencies() const
{
    return all_times;
}

series writer_pool::of(double repetition::*field) const
{
    series values;

    for (const repetition &repetition : turns) {
        values.add(repetition.*field);
    }
    return values;
}

double writer_pool::sum(double repetition::*field) const
{
    double total = 0;

    for (const repetition &repetition : turns) {
        total += repetition.*field;
    }
    return total;
}

void writer_pool::check()
{
    for (writer &one : writers) {
        one.session.reset();
    }
    store.reset();
    store = own_kind.open(path);
    for (size_t i = 0; i < writers.size(); i++) {
        check_session(*store, session_name(i), *writers[i].payloads, writers[i].count);
    }
    store.reset();
}

const writer_pool *best(const std::vector<std::unique_ptr<writer_pool>> &all,
                        const std::function<bool(const peer_kind &)> &fits)
{
    const writer_pool *found = nullptr;
    double most = 0;

    for (const std::unique_ptr<writer_pool> &each : all) {
        double rate = each->of(&repetition::rate).median();

        if (fits(each->kind()) && rate > most) {
            found = each.get();
            most = rate;
        }
    }
    return found;
}

} // namespace bench
