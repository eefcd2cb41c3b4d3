/*
 * work_tree.h - for the benchmark of checkpoints: a work tree of real source files, the bare loops
 * that its checkpoints are held against, and the peers: git, and a copy of every named file for
 * every checkpoint.
 */
#ifndef AGENTWAL_BENCH_HARNESS_WORK_TREE_H
#define AGENTWAL_BENCH_HARNESS_WORK_TREE_H

#include "bench/harness/harness.h"

namespace bench
{

/* A copy of source files of this machine, always the same ones: those of /usr/include in the order
 * of their paths, each content once. The smallest are left out until `count` files, evenly spaced,
 * have `bytes` bytes. */
class work_tree
{
  public:
    work_tree(const std::string &path, size_t count, uint64_t bytes);
    const std::string &path() const;
    /* Below the root, sorted. */
    const std::vector<std::string> &files() const;
    std::vector<std::string> directories() const;
    uint64_t bytes() const;
    /* Adds a line to `count` files, others than those of the last turns;
     * their names. Waits until their times are old enough to be trusted. */
    std::vector<std::string> edit(size_t count);

  private:
    std::string root;
    std::vector<std::string> names;
    size_t next = 0;
    uint64_t turns = 0;
};

void write_file(const std::string &path, const std::string &bytes);

/* Reads, digests and, if wanted, compresses files of a tree on `threads` threads; returns the bytes
 * that were made. */
uint64_t digest_files(const work_tree &tree, const std::vector<std::string> &files,
                      unsigned threads, bool compress);
/* Looks at each file. */
void stat_files(const work_tree &tree);

/* A repository outside of the tree. */
class git_peer
{
  public:
    git_peer(const std::string &path, const work_tree &tree);
    static bool is_there();
    void commit();
    /* Disk usage, and number, of its objects. */
    uint64_t disk_bytes() const;
    uint64_t file_count() const;

  private:
    void run(const std::string &words) const;

    std::string git_dir;
    const work_tree &tree;
};

/* A folder for each checkpoint: each file under its digest, and a list. */
class copy_peer
{
  public:
    copy_peer(const std::string &path, const work_tree &tree);
    void checkpoint();
    uint64_t disk_bytes() const;
    uint64_t file_count() const;

  private:
    std::string folder;
    const work_tree &tree;
    unsigned turns = 0;
};

/* As du has it, and the number of files. */
uint64_t disk_usage(const std::string &path);
uint64_t count_files(const std::string &path);

} // namespace bench

#endif
