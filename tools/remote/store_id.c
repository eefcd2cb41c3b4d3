/*
 * store_id.c - the id of a store on the command line (store_id.h).
 */
#include "tools/remote/store_id.h"

#include <string.h>

bool remote_parse_store_id(const char *text, uint8_t uuid[16])
{
    size_t count = 0;

    memset(uuid, 0, 16);
    for (; *text != '\0'; text++) {
        const char *digits = "0123456789abcdef";
        const char *found = strchr(digits, *text);

        if (*text == '-' &&
            (count == 8 || count == 12 || count == 16 || count == 20)) {
            continue;
        }
        if (found == NULL || count == 32) {
            return false;
        }
        uuid[count / 2] =
            (uint8_t)(uuid[count / 2] << 4 | (uint8_t)(found - digits));
        count++;
    }
    return count == 32;
}
