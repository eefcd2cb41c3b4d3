/*
 * walconv_damage - what was odd in the files of an import.
 *
 * Threads: a tool is one thread.
 */
#include "tools/walconv_damage.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void walconv_damages_add(struct walconv_damages *damages, char *path,
                         uint64_t offset, const char *reason)
{
    damages->items = cli_room(damages->items, damages->count,
                              &damages->capacity, sizeof(damages->items[0]));
    damages->items[damages->count++] =
        (struct walconv_damage){.path = path,
                                .offset = offset,
                                .reason = cli_copy(reason, strlen(reason))};
}

void walconv_damages_write(const struct walconv_damages *damages,
                           struct cli_json *json)
{
    cli_json_key(json, "damaged");
    cli_json_open(json, '[');
    for (size_t i = 0; i < damages->count; i++) {
        const struct walconv_damage *damage = &damages->items[i];
        cli_json_open(json, '{');
        cli_json_path(json, cli_slice(damage->path));
        if (damage->offset != WALCONV_NOWHERE) {
            cli_json_key(json, "offset");
            cli_json_number(json, damage->offset);
        }
        cli_json_key(json, "reason");
        cli_json_text(json, cli_slice(damage->reason));
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

void walconv_damages_print(const struct walconv_damages *damages,
                           const struct cli *cli)
{
    for (size_t i = 0; i < damages->count; i++) {
        const struct walconv_damage *damage = &damages->items[i];
        if (damage->offset == WALCONV_NOWHERE) {
            cli_error(cli, CLI_DONE, damage->path, "%s", damage->reason);
        } else {
            cli_error(cli, CLI_DONE, damage->path, "byte %" PRIu64 ": %s",
                      damage->offset, damage->reason);
        }
    }
}

void walconv_damages_deinit(struct walconv_damages *damages)
{
    for (size_t i = 0; i < damages->count; i++) {
        free(damages->items[i].path);
        free(damages->items[i].reason);
    }
    free(damages->items);
    *damages = (struct walconv_damages){.items = NULL};
}
