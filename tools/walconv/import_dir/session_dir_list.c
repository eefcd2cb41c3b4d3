/*
 * session_dir_list.c - list the files of a directory in the order of their
 * names.
 *
 * Threads: the tools are single-threaded.
 */
#include <errno.h>
#include <fts.h>
#include <string.h>

#include "tools/walconv/import_dir/session_dir.h"

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

int walconv_dir_list_files(const struct cli *cli, struct walconv_dir *dir)
{
    char *paths[] = {(char *)(uintptr_t)dir->root, NULL};
    FTS *walk =
        fts_open(paths, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_name);
    size_t root = strlen(dir->root);
    int code = CLI_OK;
    FTSENT *entry;

    while (walk != NULL && (errno = 0, entry = fts_read(walk)) != NULL) {
        if (entry->fts_info == FTS_D &&
            strcmp(entry->fts_name, ".agentwal") == 0) {
            /* state of views, not the client's files */
            fts_set(walk, entry, FTS_SKIP);
        } else if (entry->fts_info == FTS_F) {
            const char *path = entry->fts_path + root;
            path += strspn(path, "/");
            dir->files =
                cli_reserve(dir->files, dir->file_count, &dir->file_capacity,
                            sizeof(dir->files[0]));
            dir->files[dir->file_count++] = (struct walconv_dir_file){
                .path = cli_copy_text(path, strlen(path))};
        } else if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR ||
                   entry->fts_info == FTS_NS) {
            code = cli_error(cli, CLI_FAILED, entry->fts_path, "%s",
                             strerror(entry->fts_errno));
        }
    }
    if (walk == NULL || errno != 0) {
        code = cli_error(cli, CLI_FAILED, dir->root, "%s", strerror(errno));
    }
    if (walk != NULL) {
        fts_close(walk);
    }
    return code;
}
