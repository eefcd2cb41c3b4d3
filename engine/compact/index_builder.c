/*
 * index_builder.c - builds the index of a rewritten segment (index_builder.h).
 */
#include "engine/compact/index_builder.h"

#include <string.h>

#include "engine/base/error.h"

void wal__index_builder_init(struct wal__index_builder *builder,
                             const struct wal__heap *heap)
{
    memset(builder, 0, sizeof(*builder));
    wal__buf_init(&builder->summaries, heap);
    wal__buf_init(&builder->postings, heap);
    wal__buf_init(&builder->texts, heap);
    wal__buf_init(&builder->encoded, heap);
}

void wal__index_builder_deinit(struct wal__index_builder *builder)
{
    wal__buf_deinit(&builder->summaries);
    wal__buf_deinit(&builder->postings);
    wal__buf_deinit(&builder->texts);
    wal__buf_deinit(&builder->encoded);
}

enum wal_status
wal__index_builder_add_posting(struct wal__index_builder *builder,
                               const struct wal__posting *posting,
                               struct wal_error *error)
{
    uint8_t bytes[WAL__POSTING_SIZE];

    wal__posting_encode(posting, bytes);
    builder->posting_count++;
    return wal__buf_append(&builder->postings, bytes, sizeof(bytes)) == WAL_OK
               ? WAL_OK
               : wal__no_memory(error);
}

enum wal_status
wal__index_builder_add_summary(struct wal__index_builder *builder,
                               const struct wal__summary *summary,
                               struct wal_error *error)
{
    struct wal__summary copy = *summary;
    size_t text_size = wal__summary_text_size(summary);
    uint8_t *row;
    uint8_t *text;

    if (wal__buf_reserve(&builder->summaries, WAL__SUMMARY_SIZE, &row) !=
            WAL_OK ||
        wal__buf_reserve(&builder->texts, text_size, &text) != WAL_OK) {
        return wal__no_memory(error);
    }
    copy.first_posting = builder->first_posting;
    copy.posting_count = builder->posting_count - copy.first_posting;
    builder->first_posting = builder->posting_count;
    wal__summary_encode(&copy, (uint32_t)builder->texts.size, row, text);
    builder->summaries.size += WAL__SUMMARY_SIZE;
    builder->texts.size += text_size;
    builder->session_count++;
    return WAL_OK;
}

enum wal_status wal__index_builder_encode(struct wal__index_builder *builder,
                                          struct wal__index_header *header,
                                          struct wal__span *index,
                                          struct wal_error *error)
{
    const struct wal__buf *sections[] = {&builder->summaries,
                                         &builder->postings, &builder->texts};
    uint64_t size;
    uint8_t *out;
    uint8_t *to;

    header->session_count = builder->session_count;
    header->posting_count = builder->posting_count;
    header->text_size = (uint32_t)builder->texts.size;
    size = wal__index_size(header->session_count, header->posting_count,
                           header->text_size);
    builder->encoded.size = 0;
    if (wal__buf_reserve(&builder->encoded, size, &out) != WAL_OK) {
        return wal__no_memory(error);
    }
    builder->encoded.size = size;
    memset(out, 0, size);
    to = out + WAL__INDEX_HEADER_SIZE;
    for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
        if (sections[i]->size > 0) {
            memcpy(to, sections[i]->data, sections[i]->size);
        }
        to += sections[i]->size;
    }
    wal__index_finish(header, out);
    *index = (struct wal__span){out, size};
    return WAL_OK;
}
