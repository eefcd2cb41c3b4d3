/*
 * writer_pool.h - threads that append to one store at once, each to a separate session, and what
 * that took: the engine and its peers in the same way.
 */
#ifndef AGENTWAL_BENCH_WRITER_POOL_H
#define AGENTWAL_BENCH_WRITER_POOL_H

#include "bench/peers/peer.h"

namespace bench
{

/* What a repetition took. */
struct repetition {
    double rate = 0;       /* appends per second */
    double throughput = 0; /* bytes of payload per second */
    double seconds = 0;
    double p50 = 0; /* seconds */
    double p99 = 0;
    double max = 0;
    double acks = 0;
    double bytes = 0; /* of payload */
    double sent = 0;  /* bytes sent to storage */
    double syncs = 0; /* of the engine, for each append */
    double log = 0;   /* bytes that the engine's log grew by, for each append */
};

/* A store and the sessions of a number of threads. */
class writer_pool
{
  public:
    writer_pool(const peer_kind &kind, const std::string &path, size_t threads,
                const std::vector<std::vector<std::string>> &payloads);

    /* Appends for a number of seconds, or of bytes of payload in all. What is acknowledged after
     * the seconds counts as latency, not as rate; after that number of bytes the time goes on until
     * all is flushed. */
    repetition run_for(double seconds);
    repetition run_bytes(uint64_t bytes);

    const peer_kind &kind() const;
    /* Of each append of all turns. */
    const series &latencies() const;
    /* Of each repetition. */
    series of(double repetition::*field) const;
    /* Of all turns. */
    double sum(double repetition::*field) const;

    /* Closes the store, opens it again and requires that all is there that
     * was acknowledged. The last call. */
    void check();

  private:
    struct writer {
        std::unique_ptr<peer_session> session;
        const std::vector<std::string> *payloads;
        uint64_t count = 0;
        uint64_t bytes = 0; /* of this repetition, as those below */
        uint64_t in_time = 0;
        std::vector<double> times;
    };
    /* Whether it goes on, in a repetition that began then. */
    using condition = std::function<bool(const writer &, double begin)>;

    repetition run(const condition &more, double seconds);
    static void append(writer &one, double end);
    void add_repetition(repetition *total);

    const peer_kind &own_kind;
    std::string path;
    std::unique_ptr<peer> store;
    std::vector<writer> writers;
    series all_times;
    std::vector<repetition> turns;
};

/* Payloads for a number of threads. */
std::vector<std::vector<std::string>> writer_payloads(const shape &shape, size_t threads);

/* The one with the highest median rate among those that `fits`; null when there is none. */
const writer_pool *best(const std::vector<std::unique_ptr<writer_pool>> &all,
                        const std::function<bool(const peer_kind &)> &fits);

} // namespace bench

#endif
