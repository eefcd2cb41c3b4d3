/*
 * lsm.h - what RocksDB and LevelDB have in common: their C interfaces differ in names only. `api`
 * gives the names.
 */
#ifndef AGENTWAL_BENCH_PEERS_LSM_H
#define AGENTWAL_BENCH_PEERS_LSM_H

#include "bench/peers/peer.h"

#include <cstring>

namespace bench
{

const size_t lsm_buffer = 64 << 20; /* of writes, before a table is made */
const size_t lsm_cache = 256 << 20; /* of blocks that were read */

template <typename api> class lsm_peer : public batch_peer
{
  public:
    lsm_peer(const std::string &path, guarantee guarantee)
        : options(api::make_options()), db(api::open(options, path)),
          writing(api::write_options(guarantee == guarantee::durable)), reading(api::read_options())
    {
    }
    ~lsm_peer() override
    {
        api::free(writing);
        api::free(reading);
        api::close(db);
        api::free(options);
    }
    lsm_peer(const lsm_peer &) = delete;
    lsm_peer &operator=(const lsm_peer &) = delete;

    std::unique_ptr<peer_session> create(const std::string &name) override
    {
        return std::make_unique<session>(*this, name);
    }

    void commit(const std::vector<record> &records) override
    {
        auto *batch = api::make_batch();

        for (const record &each : records) {
            api::put(batch, record_key(*each.session, each.number), *each.payload);
        }
        api::write(db, writing, batch);
        api::free(batch);
    }

    uint64_t replay(const std::string &name, const visitor &visit) override
    {
        const std::string first = name + "/";
        auto *at = api::seek(db, reading, first);
        uint64_t count = 0;

        for (; api::valid(at); api::next(at)) {
            size_t size;
            const char *key = api::key(at, &size);

            if (size < first.size() || memcmp(key, first.data(), first.size()) != 0) {
                break;
            }
            const char *data = api::value(at, &size);
            visit(data, size);
            count++;
        }
        api::finish(at);
        return count;
    }

    bool read(const std::string &, const std::string &key, const visitor &visit) override
    {
        return api::get(db, reading, key, visit);
    }

  private:
    class session : public peer_session
    {
      public:
        session(lsm_peer &owner, const std::string &text) : store(owner), name(text)
        {
        }
        void append(uint64_t number, const std::string &payload) override
        {
            api::put(store.db, store.writing, record_key(name, number), payload);
        }

      private:
        lsm_peer &store;
        std::string name;
    };

    typename api::options *options;
    typename api::db *db;
    typename api::writing *writing;
    typename api::reading *reading;
};

/* A kind for each guarantee, and one grouped by the application. */
template <typename api> std::vector<peer_kind> lsm_kinds(const std::string &name)
{
    auto plain = [](guarantee guarantee) {
        return [guarantee](const std::string &path) {
            return std::make_unique<lsm_peer<api>>(path, guarantee);
        };
    };

    return {{name, guarantee::durable, grouping::own, true, true, plain(guarantee::durable)},
            {name + "-grouped", guarantee::durable, grouping::application, true, true,
             [](const std::string &path) {
                 return make_grouped(std::make_unique<lsm_peer<api>>(path, guarantee::durable));
             }},
            {name + "-written", guarantee::written, grouping::own, true, true,
             plain(guarantee::written)}};
}

} // namespace bench

#endif
