/*
 * peer.cc - the list of peers, and what they share.
 */
#include "bench/peers/peer.h"

#include <cinttypes>
#include <cstdio>

namespace bench
{

namespace
{

[[maybe_unused]] const char absent[] = "its library was not found";

std::vector<peer_kind> collect()
{
    std::vector<std::vector<peer_kind>> groups = {
        jsonl_kinds(),   json_message_kinds(),
#ifdef AGENTWAL_PEER_SQLITE
        sqlite_kinds(),
#endif
#ifdef AGENTWAL_PEER_LMDB
        lmdb_kinds(),
#endif
#ifdef AGENTWAL_PEER_ROCKSDB
        rocksdb_kinds(),
#endif
#ifdef AGENTWAL_PEER_LEVELDB
        leveldb_kinds(),
#endif
    };
    std::vector<peer_kind> all;

#ifndef AGENTWAL_PEER_SQLITE
    report_skipped("SQLite", absent);
#endif
#ifndef AGENTWAL_PEER_LMDB
    report_skipped("LMDB", absent);
#endif
#ifndef AGENTWAL_PEER_ROCKSDB
    report_skipped("RocksDB", absent);
#endif
#ifndef AGENTWAL_PEER_LEVELDB
    report_skipped("LevelDB", absent);
#endif

    for (const std::vector<peer_kind> &group : groups) {
        all.insert(all.end(), group.begin(), group.end());
    }
    return all;
}

} // namespace

std::string peer::key(const std::string &name, uint64_t number) const
{
    return record_key(name, number);
}

bool peer::read(const std::string &, const std::string &, const visitor &)
{
    return false;
}

const std::vector<peer_kind> &peer_kinds()
{
    static const std::vector<peer_kind> all = collect();

    return all;
}

const peer_kind &find_kind(const std::string &name)
{
    for (guarantee each : {guarantee::durable, guarantee::written}) {
        if (engine_kind(each).name == name) {
            return engine_kind(each);
        }
    }
    for (const peer_kind &kind : peer_kinds()) {
        if (kind.name == name) {
            return kind;
        }
    }
    require(false, "no peer " + name);
    return peer_kinds()[0];
}

std::string record_key(const std::string &session, uint64_t number)
{
    char id[32];

    snprintf(id, sizeof(id), "/e-%08" PRIx64, number);
    return session + id;
}

void check_session(peer &store, const std::string &name, const std::vector<std::string> &payloads,
                   uint64_t count)
{
    uint64_t found = 0;
    bool same = true;

    store.replay(name, [&](const char *data, size_t size) {
        const std::string &wanted = payloads[found++ % payloads.size()];

        same = same && wanted.compare(0, wanted.npos, data, size) == 0;
    });
    require(same, name + " holds other entries than were appended");
    require(found >= count, name + " lost entries that were acknowledged");
}

} // namespace bench
