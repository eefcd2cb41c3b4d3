/*
 * grouped.cc - a group commit in the application: callers leave their entry
 * and sleep; one thread commits all that waits, and wakes them. What comes
 * meanwhile is the next group.
 */
#include "bench/peers/peer.h"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace bench
{

namespace
{

class grouped : public peer
{
  public:
    explicit grouped(std::unique_ptr<batch_peer> wrapped)
        : store(std::move(wrapped)), committer([this] { run(); })
    {
    }
    ~grouped() override
    {
        {
            std::lock_guard<std::mutex> hold(mutex);
            closing = true;
        }
        arrived.notify_one();
        committer.join();
    }
    grouped(const grouped &) = delete;
    grouped &operator=(const grouped &) = delete;

    std::unique_ptr<peer_session> create(const std::string &name) override;

    uint64_t replay(const std::string &name, const visitor &visit) override
    {
        return store->replay(name, visit);
    }
    std::string key(const std::string &name, uint64_t number) const override
    {
        return store->key(name, number);
    }

    bool read(const std::string &name, const std::string &key,
              const visitor &visit) override
    {
        return store->read(name, key, visit);
    }

    void append(const record &record)
    {
        std::unique_lock<std::mutex> hold(mutex);
        uint64_t group = taken + 1;

        waiting.push_back(record);
        if (idle) {
            idle = false;
            arrived.notify_one();
        }
        committed[group % 2].wait(hold, [&] { return done >= group; });
    }

  private:
    void run()
    {
        std::unique_lock<std::mutex> hold(mutex);
        std::vector<record> group;

        for (;;) {
            while (waiting.empty() && !closing) {
                idle = true;
                arrived.wait(hold);
            }
            idle = false;
            if (waiting.empty()) {
                return;
            }
            group.swap(waiting);
            taken++;
            hold.unlock();
            store->commit(group);
            group.clear();
            hold.lock();
            done++;
            committed[done % 2].notify_all();
        }
    }

    std::unique_ptr<batch_peer> store;
    std::mutex mutex;
    std::condition_variable arrived;
    std::condition_variable committed[2]; /* of groups even and odd */
    std::vector<record> waiting;
    uint64_t taken = 0; /* groups */
    uint64_t done = 0;
    bool idle = false;
    bool closing = false;
    std::thread committer; /* the last member: it uses the others */
};

class grouped_session : public peer_session
{
  public:
    grouped_session(grouped &owner, const std::string &session)
        : store(owner), name(session)
    {
    }
    void append(uint64_t number, const std::string &payload) override
    {
        store.append({&name, number, &payload});
    }

  private:
    grouped &store;
    std::string name;
};

std::unique_ptr<peer_session> grouped::create(const std::string &name)
{
    return std::make_unique<grouped_session>(*this, name);
}

} // namespace

std::unique_ptr<peer> make_grouped(std::unique_ptr<batch_peer> store)
{
    return std::make_unique<grouped>(std::move(store));
}

} // namespace bench
