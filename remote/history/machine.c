/*
 * machine.c - what remotes ask of this machine (machine.h).
 */
#include "remote/history/machine.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/error.h"

uint64_t wal__machine_now_ms(void)
{
    struct timespec now = {0};

    /* Unlike CLOCK_MONOTONIC it counts the time of a laptop that is shut. */
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

int64_t wal__machine_unix_ms(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec < 0
               ? 0
               : (int64_t)now.tv_sec * 1000 + (int64_t)now.tv_nsec / 1000000;
}

void wal__machine_host(char host[WAL__EPOCH_HOST_SIZE])
{
    char name[256] = "";

    if (gethostname(name, sizeof(name) - 1) != 0) {
        name[0] = '\0';
    }
    name[WAL__EPOCH_HOST_SIZE - 1] = '\0';
    for (size_t i = 0; name[i] != '\0'; i++) {
        if (name[i] <= 0x20 || name[i] > 0x7e) {
            name[i] = '-';
        }
    }
    memcpy(host, name, WAL__EPOCH_HOST_SIZE);
}

enum wal_status wal__machine_random(uint8_t bytes[16], struct wal_error *error)
{
    if (getrandom(bytes, 16, 0) != 16) {
        return wal__fail(error, WAL_EIO, "the system has no random numbers");
    }
    return WAL_OK;
}
