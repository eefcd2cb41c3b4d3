/*
 * harness_crc.cc - checksums for bare passes: the one that a program would link, that of zlib, and
 * the library's own, which may be faster than both.
 */
#include <zlib.h>

#ifdef AGENTWAL_HAVE_LIBDEFLATE
#include <libdeflate.h>
#endif

#include "bench/harness/harness.h"

extern "C" {
#include "format/bytes/crc32.h"
}

namespace bench
{

uint32_t zlib_crc(const void *data, size_t size)
{
    return static_cast<uint32_t>(crc32_z(0, static_cast<const Bytef *>(data), size));
}

#ifdef AGENTWAL_HAVE_LIBDEFLATE
const char *const library_crc_name = "libdeflate";

uint32_t system_crc(const void *data, size_t size)
{
    return libdeflate_crc32(0, data, size);
}
#else
const char *const library_crc_name = "zlib";

uint32_t system_crc(const void *data, size_t size)
{
    return zlib_crc(data, size);
}
#endif

uint32_t own_crc(const void *data, size_t size)
{
    return wal__crc32(0, data, size);
}

} // namespace bench
