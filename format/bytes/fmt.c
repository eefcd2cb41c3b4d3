/*
 * fmt.c - the phrase of each enum wal__fmt (fmt.h). Threads: any.
 */
#include "format/bytes/fmt.h"

const char *wal__fmt_text(enum wal__fmt fmt)
{
    switch (fmt) {
    case WAL__FMT_OK:
        return "valid";
    case WAL__FMT_ZERO:
        return "never written";
    case WAL__FMT_SHORT:
        return "cut short";
    case WAL__FMT_MAGIC:
        return "magic does not match";
    case WAL__FMT_HEADER_CRC:
        return "checksum of the header does not match";
    case WAL__FMT_DATA_CRC:
        return "checksum of the payload does not match";
    case WAL__FMT_VERSION:
        return "format version is not known";
    case WAL__FMT_FEATURES:
        return "incompatible feature is not known";
    case WAL__FMT_TYPE:
        return "frame type is not known";
    case WAL__FMT_FIELD:
        return "field is out of range";
    }
    return "unknown fault";
}
