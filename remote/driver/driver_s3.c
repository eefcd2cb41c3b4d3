/*
 * driver_s3.c - the objects of a bucket that speaks S3 (driver_s3.h).
 */
#include "remote/driver/driver_s3.h"

#include "engine/base/error.h"

enum wal_status wal__driver_s3_open(const struct wal__driver_url *url,
                                    const struct wal__heap *heap,
                                    struct wal__driver **driver,
                                    struct wal_error *error)
{
    (void)url;
    (void)heap;
    (void)driver;
    return wal__invalid(error, "this build has no driver for s3://");
}
