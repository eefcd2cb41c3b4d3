/*
 * driver_s3.h - the objects of a bucket that speaks S3 (driver.h).
 */
#ifndef AGENTWAL_REMOTE_DRIVER_DRIVER_S3_H
#define AGENTWAL_REMOTE_DRIVER_DRIVER_S3_H

#include "remote/driver/driver_url.h"

/* Opens the bucket of the URL. Credentials are looked for by the first call. */
enum wal_status wal__driver_s3_open(const struct wal__driver_url *url,
                                    const struct wal__heap *heap,
                                    struct wal__driver **driver,
                                    struct wal_error *error) WAL_MUST_USE;

/* Sets the time after which a call tries nothing again. Its last attempt may
 * take longer while bytes of a large object arrive. Before any call. */
void wal__driver_s3_set_deadline(struct wal__driver *driver,
                                 uint32_t deadline_ms);

#endif
