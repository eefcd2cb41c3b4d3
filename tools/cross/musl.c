/*
 * musl.c - statx(), which musl has since 1.2.5 only: with it the modules load in any 1.2.
 */
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name) */
int statx(int directory, const char *restrict path, int flags, unsigned int mask,
          struct statx *restrict out)
{
    return (int)syscall(SYS_statx, directory, path, flags, mask, out);
}
