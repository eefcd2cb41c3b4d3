/*
 * key.c - reads keys of encrypted stores (key.h).
 */
#include "tools/cli/key.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void cli_use_key(const struct cli *cli, const char *path, struct wal_open_options *options)
{
    static struct wal_key key = {.struct_size = sizeof(key), .kind = WAL_KEY_SECRET};
    static char bytes[4097];
    const char *name = getenv("AGENTWAL_KEY_FILE");
    char keys[4096];
    FILE *file;

    (void)cli;
    (void)snprintf(keys, sizeof(keys), "%s/KEYS", path);
    file = name == NULL || access(keys, F_OK) != 0 ? NULL : fopen(name, "re");
    if (file != NULL) {
        key.bytes = (struct wal_slice){bytes, fread(bytes, 1, sizeof(bytes) - 1, file)};
        (void)fclose(file);
        options->key = &key;
    }
}
