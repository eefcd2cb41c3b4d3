/*
 * page.c - the page that shows sessions (page.h).
 *
 * Invariant: the page has one <style> and one <script>, and two comments: where a policy goes and
 * where data goes.
 */
#include "tools/page/page.h"

#include <string.h>

#include "format/bytes/assert.h"

/* A part of the page. */
struct part {
    const char *data;
    size_t size;
};

/* Returns what is between two texts, the first ones of their kind. */
static struct part find(const char *begin, const char *end)
{
    const char *page = (const char *)page_bytes;
    const char *from = memmem(page, page_bytes_size, begin, strlen(begin));
    const char *to;

    WAL__ASSERT(from != NULL);
    from += strlen(begin);
    to = memmem(from, page_bytes_size - (size_t)(from - page), end, strlen(end));
    WAL__ASSERT(to != NULL);
    return (struct part){from, (size_t)(to - from)};
}

void page_policy(bool is_file, char policy[PAGE_POLICY_SIZE])
{
    snprintf(policy, PAGE_POLICY_SIZE,
             "default-src 'none'; script-src 'sha256-%s'; "
             "style-src 'sha256-%s'; img-src %sdata:; %sbase-uri 'none'; "
             "form-action 'none'",
             page_script_hash, page_style_hash, is_file ? "" : "'self' ",
             is_file ? "" : "connect-src 'self'; frame-ancestors 'none'; ");
}

/* Writes JSON in which no text ends a script. */
static void put_json(FILE *file, const char *json, size_t size)
{
    const char *end = json + size;

    while (json < end) {
        const char *less = memchr(json, '<', (size_t)(end - json));
        size_t plain = (size_t)((less == NULL ? end : less) - json);

        fwrite(json, 1, plain, file);
        json += plain;
        if (less != NULL) {
            fputs("\\u003c", file);
            json++;
        }
    }
}

void page_write(FILE *file, const char *json, size_t size)
{
    static const char policy_mark[] = "<!-- policy -->";
    static const char data_mark[] = "<!-- data -->";
    const char *end = (const char *)page_bytes + page_bytes_size;
    struct part middle = find(policy_mark, data_mark);
    const char *rest = middle.data + middle.size + sizeof(data_mark) - 1;
    char policy[PAGE_POLICY_SIZE];

    page_policy(true, policy);
    fwrite(page_bytes, 1,
           (size_t)(middle.data - (const char *)page_bytes) - (sizeof(policy_mark) - 1), file);
    fprintf(file, "<meta http-equiv=\"Content-Security-Policy\" content=\"%s\">", policy);
    fwrite(middle.data, 1, middle.size, file);
    fputs("<script type=\"application/json\" id=\"data\">", file);
    put_json(file, json, size);
    fputs("</script>", file);
    fwrite(rest, 1, (size_t)(end - rest), file);
}
