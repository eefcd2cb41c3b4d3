/*
 * size.c - format numbers of bytes.
 *
 * Threads: any.
 */
#include "tools/terminal/size.h"

#include <stdio.h>

void size_text(uint64_t size, char text[SIZE_TEXT])
{
    static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
    size_t unit = 0;
    uint64_t tenths = size / 100;

    if (size < 1000) {
        snprintf(text, SIZE_TEXT, "%u %s", (unsigned)size,
                 size == 1 ? "byte" : "bytes");
        return;
    }
    while (tenths >= 10000) {
        tenths /= 1000;
        unit++;
    }
    if (tenths >= 1000) {
        snprintf(text, SIZE_TEXT, "%u %s", (unsigned)(tenths / 10),
                 units[unit]);
    } else {
        snprintf(text, SIZE_TEXT, "%u.%u %s", (unsigned)(tenths / 10),
                 (unsigned)(tenths % 10), units[unit]);
    }
}
