/*
 * grouped.cc - a group commit in the application: callers leave their entry and sleep; one thread
 * commits all that waits, and wakes them. What comes meanwhile is the next group.
 *
 * Sleepers wait on a word of memory, not on a condition: those that are woken do not queue for its
 * lock, which makes a fifth and more of 64 threads' acknowledgements.
 */
#include "bench/peers/peer.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace bench
{

namespace
{

/* A number that only grows, and threads that sleep until it is reached. */
class milestone
{
  public:
    void wait(uint32_t wanted)
    {
        for (uint32_t seen; (seen = reached.load()) < wanted;) {
            syscall(SYS_futex, &reached, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
        }
    }
    void pass()
    {
        reached++;
        syscall(SYS_futex, &reached, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
    }

  private:
    std::atomic<uint32_t> reached = {0};
};

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

    bool read(const std::string &name, const std::string &key, const visitor &visit) override
    {
        return store->read(name, key, visit);
    }

    void append(const record &record)
    {
        std::unique_lock<std::mutex> hold(mutex);
        uint32_t group = taken;
        bool wake = idle;

        waiting.push_back(record);
        idle = false;
        hold.unlock();
        if (wake) {
            arrived.notify_one();
        }
        committed[group % 2].wait(group / 2 + 1);
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
            uint32_t number = taken++;
            hold.unlock();
            store->commit(group);
            group.clear();
            committed[number % 2].pass();
            hold.lock();
        }
    }

    std::unique_ptr<batch_peer> store;
    std::mutex mutex;
    std::condition_variable arrived;
    milestone committed[2]; /* of groups even and odd */
    std::vector<record> waiting;
    uint32_t taken = 0; /* groups */
    bool idle = false;
    bool closing = false;
    std::thread committer; /* the last member: it uses the others */
};

class grouped_session : public peer_session
{
  public:
    grouped_session(grouped &owner, const std::string &session) : store(owner), name(session)
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
