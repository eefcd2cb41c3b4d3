/*
 * rocksdb.cc - RocksDB: its write-ahead log synced with each write, by a group
 * separate commit; files of its log are used again, so that a sync writes
 * no new size. No compression, since reading is measured.
 */
#include "bench/peers/lsm.h"

#include <rocksdb/c.h>

namespace bench
{

namespace
{

void check(char *error)
{
    require(error == nullptr, error == nullptr ? "" : error);
}

struct rocksdb_api {
    using options = rocksdb_options_t;
    using db = rocksdb_t;
    using writing = rocksdb_writeoptions_t;
    using reading = rocksdb_readoptions_t;
    using batch = rocksdb_writebatch_t;
    using iterator = rocksdb_iterator_t;

    static options *make_options()
    {
        static rocksdb_cache_t *cache = rocksdb_cache_create_lru(lsm_cache);
        rocksdb_block_based_table_options_t *tables = rocksdb_block_based_options_create();
        options *made = rocksdb_options_create();

        rocksdb_options_set_create_if_missing(made, 1);
        rocksdb_options_increase_parallelism(made, 4);
        rocksdb_options_set_recycle_log_file_num(made, 4);
        rocksdb_options_set_write_buffer_size(made, lsm_buffer);
        rocksdb_options_set_compression(made, rocksdb_no_compression);
        rocksdb_block_based_options_set_block_cache(tables, cache);
        rocksdb_options_set_block_based_table_factory(made, tables);
        rocksdb_block_based_options_destroy(tables);
        return made;
    }
    static db *open(options *how, const std::string &path)
    {
        char *error = nullptr;
        db *made = rocksdb_open(how, path.c_str(), &error);

        check(error);
        return made;
    }
    static writing *write_options(bool sync)
    {
        writing *made = rocksdb_writeoptions_create();

        rocksdb_writeoptions_set_sync(made, sync);
        return made;
    }
    static reading *read_options()
    {
        reading *made = rocksdb_readoptions_create();

        rocksdb_readoptions_set_verify_checksums(made, 1);
        return made;
    }

    static void put(db *to, writing *how, const std::string &key, const std::string &value)
    {
        char *error = nullptr;

        rocksdb_put(to, how, key.data(), key.size(), value.data(), value.size(), &error);
        check(error);
    }
    static batch *make_batch()
    {
        return rocksdb_writebatch_create();
    }
    static void put(batch *to, const std::string &key, const std::string &value)
    {
        rocksdb_writebatch_put(to, key.data(), key.size(), value.data(), value.size());
    }
    static void write(db *to, writing *how, batch *what)
    {
        char *error = nullptr;

        rocksdb_write(to, how, what, &error);
        check(error);
    }

    static bool get(db *from, reading *how, const std::string &key, const visitor &visit)
    {
        char *error = nullptr;
        rocksdb_pinnableslice_t *found =
            rocksdb_get_pinned(from, how, key.data(), key.size(), &error);
        size_t size = 0;

        check(error);
        if (found == nullptr) {
            return false;
        }
        const char *data = rocksdb_pinnableslice_value(found, &size);
        visit(data, size);
        rocksdb_pinnableslice_destroy(found);
        return true;
    }
    static iterator *seek(db *in, reading *how, const std::string &first)
    {
        iterator *made = rocksdb_create_iterator(in, how);

        rocksdb_iter_seek(made, first.data(), first.size());
        return made;
    }
    static bool valid(iterator *at)
    {
        return rocksdb_iter_valid(at) != 0;
    }
    static void next(iterator *at)
    {
        rocksdb_iter_next(at);
    }
    static const char *key(iterator *at, size_t *size)
    {
        return rocksdb_iter_key(at, size);
    }
    static const char *value(iterator *at, size_t *size)
    {
        return rocksdb_iter_value(at, size);
    }
    static void finish(iterator *at)
    {
        char *error = nullptr;

        rocksdb_iter_get_error(at, &error);
        check(error);
        rocksdb_iter_destroy(at);
    }

    static void close(db *what)
    {
        rocksdb_close(what);
    }
    static void free(options *what)
    {
        rocksdb_options_destroy(what);
    }
    static void free(writing *what)
    {
        rocksdb_writeoptions_destroy(what);
    }
    static void free(reading *what)
    {
        rocksdb_readoptions_destroy(what);
    }
    static void free(batch *what)
    {
        rocksdb_writebatch_destroy(what);
    }
};

} // namespace

std::vector<peer_kind> rocksdb_kinds()
{
    return lsm_kinds<rocksdb_api>("rocksdb");
}

} // namespace bench
