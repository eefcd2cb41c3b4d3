/*
 * agentwal.h - the engine as one of the peers, with its own statistics.
 */
#ifndef AGENTWAL_BENCH_PEERS_AGENTWAL_H
#define AGENTWAL_BENCH_PEERS_AGENTWAL_H

#include "bench/peers/peer.h"

namespace bench
{

class engine_peer : public peer
{
  public:
    engine_peer(const std::string &path, guarantee guarantee);
    ~engine_peer() override;
    engine_peer(const engine_peer &) = delete;
    engine_peer &operator=(const engine_peer &) = delete;

    void flush() override;
    std::unique_ptr<peer_session> create(const std::string &name) override;
    uint64_t replay(const std::string &name, const visitor &visit) override;
    std::string key(const std::string &name, uint64_t number) const override;
    bool read(const std::string &name, const std::string &key, const visitor &visit) override;
    wal_store_info status() const;

  private:
    static wal_entry_cursor *open_iter(wal_session *session);

    wal_store *store;
    wal_durability durability;
    std::string reading_name; /* the session that read() is in */
    wal_session *reading = nullptr;
    wal_entry_cursor *cursor = nullptr;
};

} // namespace bench

#endif
