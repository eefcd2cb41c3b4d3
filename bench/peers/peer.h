/*
 * peer.h - what agents keep their sessions in instead, and the engine, through one small interface,
 * so that all of them do the same work in the same run.
 *
 * A peer keeps the payload of each entry byte for byte, under the name of its session and its
 * number there, and gives it back in order. What an append has done when it returns is what its
 * kind promises. Failures end the program.
 */
#ifndef AGENTWAL_BENCH_PEERS_PEER_H
#define AGENTWAL_BENCH_PEERS_PEER_H

#include "bench/harness/harness.h"

#include <memory>

namespace bench
{

enum class guarantee {
    durable, /* it survives a power cut */
    written, /* it survives a killed process */
    queued   /* the engine alone: none, until flush() */
};

/* An entry to keep. */
struct record {
    const std::string *session;
    uint64_t number;
    const std::string *payload;
};

/* A session, for the one thread that appends to it. */
class peer_session
{
  public:
    virtual ~peer_session() = default;
    virtual void append(uint64_t number, const std::string &payload) = 0;
};

/* Takes a payload; the bytes hold during the call. */
using visitor = std::function<void(const char *data, size_t size)>;

/* A store that is open. Sessions are closed before it. */
class peer
{
  public:
    virtual ~peer() = default;

    /* Has all that was appended be written. */
    virtual void flush()
    {
    }

    /* Makes a session. One thread at a time. */
    virtual std::unique_ptr<peer_session> create(const std::string &name) = 0;

    /* Gives all payloads of a session in order; how many. One thread. */
    virtual uint64_t replay(const std::string &name, const visitor &visit) = 0;

    /* What the session's entry is called here. */
    virtual std::string key(const std::string &name, uint64_t number) const;

    /* Gives the payload of one entry by its key; whether it is there. One thread. Only where the
     * kind says so. */
    virtual bool read(const std::string &name, const std::string &key, const visitor &visit);
};

/* A peer that commits several entries at once. */
class batch_peer : public peer
{
  public:
    /* Keeps all of them as one commit. One thread at a time. */
    virtual void commit(const std::vector<record> &records) = 0;
};

/* What an application can do about the syncs of a store that has no group commit: one thread takes
 * all that waits into one commit. */
std::unique_ptr<peer> make_grouped(std::unique_ptr<batch_peer> store);

enum class grouping {
    own,        /* none, or what the store itself does */
    application /* make_grouped */
};

struct peer_kind {
    std::string name;
    enum guarantee guarantee;
    enum grouping grouping;
    bool verifies;  /* checksums, when it reads */
    bool reads_ids; /* read() works */
    std::function<std::unique_ptr<peer>(const std::string &path)> open;
};

/* The engine. */
const peer_kind &engine_kind(guarantee guarantee);

/* Those that were found when this was built. */
const std::vector<peer_kind> &peer_kinds();

/* The kind of this name, the engine's too. */
const peer_kind &find_kind(const std::string &name);

/* "s-5/e-0000002a": sorts by session, then by number. */
std::string record_key(const std::string &session, uint64_t number);

/* Counts and verifies, in a fresh handle, what was acknowledged: payloads in turns, the first
 * `count` of the session at least. */
void check_session(peer &store, const std::string &name, const std::vector<std::string> &payloads,
                   uint64_t count);

std::vector<peer_kind> jsonl_kinds();
std::vector<peer_kind> json_message_kinds();
std::vector<peer_kind> sqlite_kinds();
std::vector<peer_kind> lmdb_kinds();
std::vector<peer_kind> rocksdb_kinds();
std::vector<peer_kind> leveldb_kinds();

} // namespace bench

#endif
