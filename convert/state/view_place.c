/*
 * view_place.c - where the state of views is kept (view_place.h).
 *
 * Threads: any.
 */
#include "convert/state/view_place.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "convert/clients/client_place.h"
#include "convert/files/view_fs.h"
#include "convert/source/source_name.h"

/* Whether the root is a client's folder, and not only below one. */
static bool is_client_folder(const char *root)
{
    struct wal__place place = wal__place_of_argument(root);

    return place.kind == WAL__PLACE_CLIENT && place.base == strlen(root);
}

static bool has_old_state(const char *root)
{
    char name[2 * PATH_MAX];

    snprintf(name, sizeof(name), "%s/" WAL__VIEW_STATE_DIR "/lock", root);
    return access(name, F_OK) == 0;
}

bool wal__view_place(const char *root, char path[PATH_MAX])
{
    const char *base = getenv("XDG_STATE_HOME");
    const char *below = "agentwal/views";
    char resolved[PATH_MAX];
    int used;

    if (base == NULL || base[0] != '/') {
        base = getenv("HOME");
        below = ".local/state/agentwal/views";
    }
    if (base == NULL || base[0] != '/' || realpath(root, resolved) == NULL ||
        !is_client_folder(resolved) || has_old_state(resolved)) {
        return false;
    }
    used = snprintf(path, PATH_MAX, "%s/%s/%016" PRIx64, base, below,
                    wal__source_hash(resolved));
    return used > 0 && used < PATH_MAX;
}
