/*
 * walconv_tree_walk - gathers the files of a tree, in the order of their names.
 *
 * Threads: a tool is one thread.
 */
#include <errno.h>
#include <fts.h>
#include <string.h>

#include "tools/walconv_tree.h"

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

int walconv_tree_gather(const struct cli *cli, struct walconv_tree *tree)
{
    char *paths[] = {(char *)(uintptr_t)tree->root, NULL};
    FTS *walk =
        fts_open(paths, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_name);
    size_t root = strlen(tree->root);
    int code = CLI_DONE;
    FTSENT *entry;

    while (walk != NULL && (errno = 0, entry = fts_read(walk)) != NULL) {
        if (entry->fts_info == FTS_D &&
            strcmp(entry->fts_name, ".agentwal") == 0) {
            fts_set(walk, entry, FTS_SKIP); /* of views, not the client's */
        } else if (entry->fts_info == FTS_F) {
            const char *path = entry->fts_path + root;
            path += strspn(path, "/");
            tree->files =
                cli_room(tree->files, tree->file_count, &tree->file_capacity,
                         sizeof(tree->files[0]));
            tree->files[tree->file_count++] = (struct walconv_tree_file){
                .path = cli_copy(path, strlen(path))};
        } else if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR ||
                   entry->fts_info == FTS_NS) {
            code = cli_error(cli, CLI_FAILED, entry->fts_path, "%s",
                             strerror(entry->fts_errno));
        }
    }
    if (walk == NULL || errno != 0) {
        code = cli_error(cli, CLI_FAILED, tree->root, "%s", strerror(errno));
    }
    if (walk != NULL) {
        fts_close(walk);
    }
    return code;
}
