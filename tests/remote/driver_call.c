/*
 * driver_call.c - makes one call of a driver, for scripts:
 *
 *   remote_driver_call URL DEADLINE_MS put_if_absent|put NAME TEXT
 *   remote_driver_call URL DEADLINE_MS put_file NAME FILE
 *   remote_driver_call URL DEADLINE_MS get|head|remove NAME
 *   remote_driver_call URL DEADLINE_MS list PREFIX
 *
 * Prints the status as a number, the error's URL and text, and what the call returned, a line each.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "remote/driver/driver.h"

static struct wal_error failure = {.struct_size = sizeof(failure)};

static bool print_each(void *ctx, const char *name, uint64_t size)
{
    (void)ctx;
    (void)printf("%s %llu\n", name, (unsigned long long)size);
    return true;
}

static enum wal_status get(struct wal__driver *driver, const char *name)
{
    struct wal__buf bytes;
    enum wal_status status;

    wal__buf_init(&bytes, &wal__heap_libc);
    status = driver->calls->get(driver, name, 0, UINT64_MAX, &bytes, &failure);
    if (status == WAL_OK) {
        (void)fwrite(bytes.data, 1, bytes.size, stdout);
        (void)putchar('\n');
    }
    wal__buf_deinit(&bytes);
    return status;
}

static enum wal_status head(struct wal__driver *driver, const char *name)
{
    uint64_t size = 0;
    enum wal_status status = driver->calls->head(driver, name, &size, &failure);

    if (status == WAL_OK) {
        (void)printf("%llu\n", (unsigned long long)size);
    }
    return status;
}

/* Puts the content of a file. */
static enum wal_status put_file(struct wal__driver *driver, const char *name, const char *path)
{
    FILE *file = fopen(path, "rb");
    struct wal__buf bytes;
    enum wal_status status = WAL_EIO;
    uint8_t *end;
    size_t got;

    wal__buf_init(&bytes, &wal__heap_libc);
    while (file != NULL && wal__buf_reserve(&bytes, 1 << 20, &end) == WAL_OK &&
           (got = fread(end, 1, 1 << 20, file)) > 0) {
        bytes.size += got;
    }
    if (file != NULL && ferror(file) == 0) {
        status =
            driver->calls->put(driver, name, (struct wal_slice){bytes.data, bytes.size}, &failure);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    wal__buf_deinit(&bytes);
    return status;
}

static enum wal_status call(struct wal__driver *driver, const char *verb, const char *name,
                            const char *text)
{
    const struct wal_slice bytes = {text, strlen(text)};

    if (strcmp(verb, "put_if_absent") == 0) {
        return driver->calls->put_if_absent(driver, name, bytes, &failure);
    }
    if (strcmp(verb, "put") == 0) {
        return driver->calls->put(driver, name, bytes, &failure);
    }
    if (strcmp(verb, "put_file") == 0) {
        return put_file(driver, name, text);
    }
    if (strcmp(verb, "get") == 0) {
        return get(driver, name);
    }
    if (strcmp(verb, "head") == 0) {
        return head(driver, name);
    }
    if (strcmp(verb, "remove") == 0) {
        return driver->calls->remove(driver, name, &failure);
    }
    return driver->calls->list(driver, name, "", print_each, NULL, &failure);
}

static void set_deadline(struct wal__driver *driver, const char *url, uint32_t deadline_ms)
{
    if (strncmp(url, "s3:", 3) == 0) {
        wal__driver_s3_set_deadline(driver, deadline_ms);
    }
}

int main(int argc, char **argv)
{
    struct wal__driver *driver = NULL;
    enum wal_status status;

    if (argc < 5) {
        (void)fputs("usage: URL DEADLINE_MS VERB NAME [TEXT]\n", stderr);
        return 2;
    }
    status = wal__driver_open(argv[1], &wal__heap_libc, &driver, &failure);
    if (status == WAL_OK) {
        set_deadline(driver, argv[1], (uint32_t)strtoul(argv[2], NULL, 10));
        status = call(driver, argv[3], argv[4], argc > 5 ? argv[5] : "");
        driver->calls->close(driver);
    }
    (void)printf("%d\n%s\n%s\n", (int)status, failure.file, failure.text);
    return 0;
}
