/*
 * lmdb.cc - LMDB: a map of the file, one writer at a time, a sync for each commit. It keeps no
 * checksums.
 */
#include "bench/peers/peer.h"

#include <lmdb.h>
#include <sys/stat.h>

namespace bench
{

namespace
{

const size_t map_size = size_t{64} << 30; /* of addresses, not of disk */

void check(int status)
{
    require(status == MDB_SUCCESS, mdb_strerror(status));
}

MDB_val value(const std::string &text)
{
    return {text.size(), const_cast<char *>(text.data())};
}

class lmdb_peer : public batch_peer
{
  public:
    lmdb_peer(const std::string &path, guarantee guarantee)
    {
        MDB_txn *txn = nullptr;

        require(mkdir(path.c_str(), 0700) == 0 || errno == EEXIST, "cannot make " + path);
        check(mdb_env_create(&env));
        check(mdb_env_set_mapsize(env, map_size));
        check(mdb_env_open(env, path.c_str(), guarantee == guarantee::durable ? 0 : MDB_NOSYNC,
                           0600));
        check(mdb_txn_begin(env, nullptr, 0, &txn));
        check(mdb_dbi_open(txn, nullptr, 0, &entries));
        check(mdb_txn_commit(txn));
    }
    ~lmdb_peer() override
    {
        mdb_txn_abort(reading);
        mdb_env_close(env);
    }
    lmdb_peer(const lmdb_peer &) = delete;
    lmdb_peer &operator=(const lmdb_peer &) = delete;

    std::unique_ptr<peer_session> create(const std::string &name) override;

    void commit(const std::vector<record> &records) override
    {
        MDB_txn *txn = nullptr;

        check(mdb_txn_begin(env, nullptr, 0, &txn));
        for (const record &each : records) {
            std::string name = record_key(*each.session, each.number);
            MDB_val key = value(name);
            MDB_val data = value(*each.payload);

            check(mdb_put(txn, entries, &key, &data, MDB_NOOVERWRITE));
        }
        check(mdb_txn_commit(txn));
    }

    uint64_t replay(const std::string &name, const visitor &visit) override
    {
        std::string first = name + "/";
        MDB_val key = value(first);
        MDB_val data = {};
        MDB_txn *txn = nullptr;
        MDB_cursor *cursor = nullptr;
        uint64_t count = 0;

        check(mdb_txn_begin(env, nullptr, MDB_RDONLY, &txn));
        check(mdb_cursor_open(txn, entries, &cursor));
        int status = mdb_cursor_get(cursor, &key, &data, MDB_SET_RANGE);
        while (status == MDB_SUCCESS && key.mv_size > first.size() &&
               first.compare(0, first.npos, static_cast<const char *>(key.mv_data), first.size()) ==
                   0) {
            visit(static_cast<const char *>(data.mv_data), data.mv_size);
            count++;
            status = mdb_cursor_get(cursor, &key, &data, MDB_NEXT);
        }
        require(status == MDB_SUCCESS || status == MDB_NOTFOUND, mdb_strerror(status));
        mdb_cursor_close(cursor);
        mdb_txn_abort(txn);
        return count;
    }

    bool read(const std::string &, const std::string &wanted, const visitor &visit) override
    {
        MDB_val key = value(wanted);
        MDB_val data = {};

        if (reading == nullptr) {
            check(mdb_txn_begin(env, nullptr, MDB_RDONLY, &reading));
        } else {
            check(mdb_txn_renew(reading));
        }
        int status = mdb_get(reading, entries, &key, &data);
        if (status == MDB_SUCCESS) {
            visit(static_cast<const char *>(data.mv_data), data.mv_size);
        }
        mdb_txn_reset(reading);
        return status == MDB_SUCCESS;
    }

  private:
    MDB_env *env = nullptr;
    MDB_txn *reading = nullptr; /* between two reads it is reset */
    MDB_dbi entries = 0;
};

class lmdb_session : public peer_session
{
  public:
    lmdb_session(lmdb_peer &owner, const std::string &session) : store(owner), name(session)
    {
    }
    void append(uint64_t number, const std::string &payload) override
    {
        store.commit({{&name, number, &payload}});
    }

  private:
    lmdb_peer &store;
    std::string name;
};

std::unique_ptr<peer_session> lmdb_peer::create(const std::string &name)
{
    return std::make_unique<lmdb_session>(*this, name);
}

peer_kind plain(const char *name, guarantee guarantee)
{
    return {name, guarantee, grouping::own, false, true, [guarantee](const std::string &path) {
                return std::make_unique<lmdb_peer>(path, guarantee);
            }};
}

} // namespace

std::vector<peer_kind> lmdb_kinds()
{
    return {plain("lmdb", guarantee::durable),
            {"lmdb-grouped", guarantee::durable, grouping::application, false, true,
             [](const std::string &path) {
                 return make_grouped(std::make_unique<lmdb_peer>(path, guarantee::durable));
             }},
            plain("lmdb-written", guarantee::written)};
}

} // namespace bench
