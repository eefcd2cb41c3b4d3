/*
 * encrypt.c - encrypts and decrypts frames and files (encrypt.h; SPEC.md 8.2, 8.3).
 *
 * The key of a segment or of a file is derived from a data key and a salt that is random, so that
 * no key encrypts more than a segment: random nonces do not repeat there, also where two copies of
 * a store go on apart.
 */
#include "engine/log/encrypt.h"

#include <string.h>

#include "engine/base/system.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"

/* --- the keyring -------------------------------------------------------- */

struct wal__keyring *wal__keyring_create(const struct wal__io *io, const uint8_t uuid[16])
{
    struct wal__keyring *keyring = wal__system_secret_alloc(sizeof(*keyring));

    if (keyring != NULL) {
        keyring->io = io;
        memcpy(keyring->uuid, uuid, sizeof(keyring->uuid));
        pthread_mutex_init(&keyring->mutex, NULL);
    }
    return keyring;
}

void wal__keyring_destroy(struct wal__keyring *keyring)
{
    if (keyring != NULL) {
        pthread_mutex_destroy(&keyring->mutex);
        wal__secret_clear(keyring, sizeof(*keyring));
        wal__system_secret_free(keyring, sizeof(*keyring));
    }
}

static bool has_id(const struct wal__keyring_key *keys, uint32_t count, uint32_t id)
{
    bool has = false;

    for (uint32_t i = 0; i < count; i++) {
        has |= keys[i].id == id;
    }
    return has;
}

void wal__keyring_set(struct wal__keyring *keyring, const struct wal__keyring_key *keys,
                      uint32_t count, const uint64_t plain_ids[2])
{
    const uint32_t room = WAL__DATA_KEYS_MAX - count;
    uint32_t kept = 0;

    WAL__ASSERT(count > 0 && count <= WAL__DATA_KEYS_MAX);
    pthread_mutex_lock(&keyring->mutex);
    /* Those that are not in KEYS any more are of segments that were replaced, and that slices may
     * still point to. */
    for (uint32_t i = 0; i < keyring->count && kept < room; i++) {
        if (!has_id(keys, count, keyring->keys[i].id)) {
            keyring->keys[kept++] = keyring->keys[i];
        }
    }
    memcpy(keyring->keys + kept, keys, count * sizeof(keys[0]));
    wal__secret_clear(keyring->keys + kept + count, (room - kept) * sizeof(keys[0]));
    keyring->count = kept + count;
    memcpy(keyring->plain_ids, plain_ids, sizeof(keyring->plain_ids));
    pthread_mutex_unlock(&keyring->mutex);
}

enum wal_status wal__keyring_reload(struct wal__keyring *keyring, struct wal_error *error)
{
    return keyring == NULL || keyring->reload == NULL ? WAL_OK : keyring->reload(keyring, error);
}

/* The rank of a data key, or the count. Under the mutex. */
static uint32_t find_key(const struct wal__keyring *keyring, uint32_t id)
{
    uint32_t rank = 0;

    while (rank < keyring->count && keyring->keys[rank].id != id) {
        rank++;
    }
    return rank;
}

/* Locks the mutex, and finds a data key; one that is not known may have been made by another
 * process. WAL_EKEY: there is none, and the mutex is not locked. */
static enum wal_status lock_key(struct wal__keyring *keyring, uint32_t id, uint32_t *rank)
{
    enum wal_status status = WAL_OK;

    pthread_mutex_lock(&keyring->mutex);
    *rank = find_key(keyring, id);
    if (*rank == keyring->count) {
        pthread_mutex_unlock(&keyring->mutex);
        status = wal__keyring_reload(keyring, NULL);
        pthread_mutex_lock(&keyring->mutex);
        *rank = find_key(keyring, id);
    }
    if (*rank < keyring->count) {
        return WAL_OK;
    }
    pthread_mutex_unlock(&keyring->mutex);
    return status == WAL_ENOMEM || status == WAL_EIO ? status : WAL_EKEY;
}

uint32_t wal__encrypt_newest_id(struct wal__keyring *keyring)
{
    uint32_t id;

    pthread_mutex_lock(&keyring->mutex);
    id = keyring->keys[keyring->count - 1].id;
    pthread_mutex_unlock(&keyring->mutex);
    return id;
}

static enum wal_status derive_segment_key(const struct wal__keyring *keyring,
                                          const struct wal__segment_header *header, uint32_t rank,
                                          struct wal__key *key)
{
    uint8_t info[16 + 16 + 8 + 8 + 4] = "agentwal segment";

    memcpy(info + 16, keyring->uuid, 16);
    wal__put64(info + 32, header->salt);
    wal__put64(info + 40, header->id);
    wal__put32(info + 48, header->class);
    return wal__key_derive(&keyring->keys[rank].key, (struct wal__span){info, sizeof(info)}, key);
}

/* Sets the key of the segment, unless the cipher has it. */
static enum wal_status use_segment_key(struct wal__keyring *keyring, struct wal__cipher *cipher,
                                       const struct wal__segment_header *header)
{
    const uint32_t place = (uint32_t)header->salt % WAL__SEGMENT_KEYS;
    enum wal_status status;
    enum wal__suite suite;
    struct wal__key key;
    uint32_t rank;

    if (cipher->key_id == header->salt && cipher->key_id != 0) {
        return WAL_OK;
    }
    status = lock_key(keyring, header->key_id, &rank);
    if (status != WAL_OK) {
        return status;
    }
    suite = keyring->keys[rank].suite;
    if (keyring->segments[place].salt != header->salt ||
        keyring->segments[place].id != header->id) {
        keyring->segments[place].salt = header->salt;
        keyring->segments[place].id = header->id;
        status = derive_segment_key(keyring, header, rank, &keyring->segments[place].key);
        if (status != WAL_OK) {
            keyring->segments[place].id = 0;
        }
    }
    key = keyring->segments[place].key;
    pthread_mutex_unlock(&keyring->mutex);
    if (status == WAL_OK) {
        status = wal__cipher_set_key(cipher, suite, &key);
    }
    if (status == WAL_OK) {
        cipher->key_id = header->salt;
    }
    wal__secret_clear(&key, sizeof(key));
    return status;
}

void wal__encrypt_header(struct wal__keyring *keyring, struct wal__segment_header *header)
{
    header->features.incompat &= ~WAL__INCOMPAT_ENCRYPTED;
    header->key_id = 0;
    if (keyring != NULL) {
        header->features.incompat |= WAL__INCOMPAT_ENCRYPTED;
        header->key_id = wal__encrypt_newest_id(keyring);
    }
}

bool wal__encrypt_is_current(struct wal__keyring *keyring, const struct wal__segment_header *header)
{
    return keyring == NULL ? !wal__segment_is_encrypted(header)
                           : wal__segment_is_encrypted(header) &&
                                 header->key_id == wal__encrypt_newest_id(keyring);
}

bool wal__encrypt_may_be_plain(struct wal__keyring *keyring,
                               const struct wal__segment_header *header)
{
    bool may;

    if (keyring == NULL || wal__segment_is_encrypted(header)) {
        return false;
    }
    pthread_mutex_lock(&keyring->mutex);
    may = header->id <= keyring->plain_ids[header->class == WAL__CLASS_PACK];
    pthread_mutex_unlock(&keyring->mutex);
    return may;
}

/* --- frames ------------------------------------------------------------- */

/* Where the parts of an encrypted payload are, from its end. */
enum {
    HASH_SIZE = 8,
    FROM_TAG = WAL__TAG_SIZE,
    FROM_NONCE = FROM_TAG + WAL__NONCE_SIZE,
    FROM_HASH = FROM_NONCE + HASH_SIZE,
    BOUND_SIZE = 8 + WAL__FRAME_SIZE /* what a tag authenticates in addition */
};

WAL__FOLLOWS((int)WAL__FRAME_CIPHER_SIZE, (int)FROM_NONCE, (int)HASH_SIZE);

/* Writes what the tag of a frame authenticates: its offset, and its header as stored but for the
 * checksums. */
static void bind(const struct wal__frame *frame, uint64_t offset, uint8_t out[BOUND_SIZE])
{
    struct wal__frame header = *frame;

    header.data_crc = 0;
    wal__put64(out, offset);
    wal__frame_encode(&header, 0, 0, out + 8);
}

enum wal_status wal__encrypt_frame(struct wal__keyring *keyring, struct wal__cipher *cipher,
                                   const struct wal__segment_header *header, uint64_t offset,
                                   struct wal__frame *frame, const uint8_t *payload, uint8_t *out)
{
    const uint32_t size = frame->stored_size;
    uint8_t *stored = out + WAL__FRAME_SIZE;
    uint8_t *end = stored + size + WAL__FRAME_CIPHER_SIZE;
    const struct wal__span in = {stored, size + HASH_SIZE};
    uint8_t bound[BOUND_SIZE];
    enum wal_status status = use_segment_key(keyring, cipher, header);

    WAL__ASSERT(wal__frame_is_secret(frame->type));
    if (status != WAL_OK) {
        return status;
    }
    memmove(stored, payload, size);
    wal__put64(end - FROM_HASH, frame->id_hash);
    keyring->io->random(keyring->io->ctx, end - FROM_NONCE, WAL__NONCE_SIZE);
    if (keyring->on_nonce != NULL) {
        keyring->on_nonce(keyring->on_nonce_ctx, header->salt, end - FROM_NONCE);
    }
    frame->id_hash = 0;
    frame->stored_size += WAL__FRAME_CIPHER_SIZE;
    frame->raw_size = (frame->flags & WAL__FRAME_LZ4) != 0 ? frame->raw_size : frame->stored_size;
    bind(frame, offset, bound);
    status = wal__cipher_encrypt(cipher, end - FROM_NONCE, (struct wal__span){bound, sizeof(bound)},
                                 in, stored, end - FROM_TAG);
    memset(end, 0,
           wal__frame_total_size(frame->stored_size) - WAL__FRAME_SIZE - frame->stored_size);
    frame->data_crc = wal__crc32(0, stored, frame->stored_size);
    wal__frame_encode(frame, header->salt, offset, out);
    return status;
}

enum wal_status wal__decrypt_frame(struct wal__keyring *keyring, struct wal__cipher *cipher,
                                   const struct wal__segment_header *header, uint64_t offset,
                                   struct wal__frame *frame, const uint8_t *stored, uint8_t *out)
{
    const uint8_t *end = stored + frame->stored_size;
    enum wal_status status = use_segment_key(keyring, cipher, header);
    uint8_t bound[BOUND_SIZE];
    struct wal__span in;

    if (status != WAL_OK) {
        return status;
    }
    if (frame->stored_size < WAL__FRAME_CIPHER_SIZE || frame->id_hash != 0) {
        return WAL_ECORRUPT;
    }
    in = (struct wal__span){stored, frame->stored_size - FROM_NONCE};
    bind(frame, offset, bound);
    status = wal__cipher_decrypt(cipher, end - FROM_NONCE, (struct wal__span){bound, sizeof(bound)},
                                 in, out, end - FROM_TAG);
    if (status == WAL_OK) {
        frame->stored_size -= WAL__FRAME_CIPHER_SIZE;
        frame->raw_size =
            (frame->flags & WAL__FRAME_LZ4) != 0 ? frame->raw_size : frame->stored_size;
        frame->id_hash = wal__get64(out + frame->stored_size);
        frame->data_crc = wal__crc32(0, out, frame->stored_size);
    }
    return status;
}

enum wal_status wal__decrypt_payload(struct wal__keyring *keyring, struct wal__cipher *cipher,
                                     const struct wal__segment_header *header, uint64_t offset,
                                     struct wal__frame *frame, struct wal__buf *plain,
                                     const uint8_t **payload)
{
    enum wal_status status;
    uint8_t *out;

    if (!wal__encrypt_covers(header, frame->type)) {
        return WAL_OK;
    }
    plain->size = 0;
    if (wal__buf_reserve(plain, frame->stored_size, &out) != WAL_OK) {
        return WAL_ENOMEM;
    }
    status = wal__decrypt_frame(keyring, cipher, header, offset, frame, *payload, out);
    *payload = out;
    return status;
}

/* --- files -------------------------------------------------------------- */

enum {
    FILE_KEY_ID = 8,
    FILE_ZERO = FILE_KEY_ID + 4,
    FILE_SALT = FILE_ZERO + 4,
    FILE_SIZE = FILE_SALT + 16,
    FILE_PAGE_SIZE = FILE_SIZE + 8,
    FILE_HEADER_SIZE = 48
};

WAL__FOLLOWS((int)FILE_HEADER_SIZE, (int)FILE_PAGE_SIZE, 8);
WAL__FOLLOWS((int)WAL__FILE_CIPHER_SIZE, (int)FILE_HEADER_SIZE, (int)WAL__TAG_SIZE);

static const uint8_t file_magic[8] = "AGWALENC";

static uint64_t pages_of(uint64_t size, uint64_t page_size)
{
    return page_size == 0 ? 1 : size / page_size + (size % page_size != 0);
}

uint64_t wal__encrypted_size(uint64_t size, uint64_t page_size)
{
    return FILE_HEADER_SIZE + size + pages_of(size, page_size) * WAL__TAG_SIZE;
}

/* Sets the key of the file with this header, and binds header and name. */
static enum wal_status use_file_key(struct wal__keyring *keyring, const char *name,
                                    const uint8_t *header, struct wal__cipher *cipher,
                                    struct wal__key *bound)
{
    uint8_t info[16 + 16 + 16] = "agentwal file";
    uint8_t text[FILE_HEADER_SIZE + WAL__FILE_NAME_MAX];
    const size_t size = strlen(name);
    enum wal__suite suite;
    struct wal__key key;
    uint32_t rank;
    enum wal_status status = lock_key(keyring, wal__get32(header + FILE_KEY_ID), &rank);

    WAL__ASSERT(size <= WAL__FILE_NAME_MAX);
    if (status != WAL_OK) {
        return status == WAL_EKEY ? WAL_ECORRUPT : status; /* its key ended with a compaction */
    }
    memcpy(info + 16, keyring->uuid, 16);
    memcpy(info + 32, header + FILE_SALT, 16);
    suite = keyring->keys[rank].suite;
    memcpy(text, header, FILE_HEADER_SIZE);
    memcpy(text + FILE_HEADER_SIZE, name, size);
    status =
        wal__key_derive(&keyring->keys[rank].key, (struct wal__span){info, sizeof(info)}, &key);
    pthread_mutex_unlock(&keyring->mutex);
    if (status == WAL_OK) {
        status =
            wal__key_mac(&key, (struct wal__span){text, FILE_HEADER_SIZE + size}, bound->bytes);
    }
    if (status == WAL_OK) {
        status = wal__cipher_set_key(cipher, suite, &key);
    }
    wal__secret_clear(&key, sizeof(key));
    return status;
}

/* A page's nonce is its number: a key encrypts one file only, once. */
static void page_nonce(uint64_t page, uint8_t nonce[WAL__NONCE_SIZE])
{
    memset(nonce, 0, WAL__NONCE_SIZE);
    wal__put64(nonce, page);
}

/* Where a page is in the content, with its size. */
static size_t find_page(uint64_t size, uint64_t page_size, uint64_t page, uint64_t *offset)
{
    *offset = page * page_size;
    return (size_t)(page_size == 0 || size - *offset < page_size ? size - *offset : page_size);
}

enum wal_status wal__encrypt_pages(struct wal__keyring *keyring, const char *name,
                                   struct wal__span in, uint64_t page_size, uint8_t *out)
{
    const struct wal__io *io = keyring->io;
    struct wal__cipher cipher = {0};
    struct wal__key bound;
    enum wal_status status;

    memset(out, 0, FILE_HEADER_SIZE);
    memcpy(out, file_magic, sizeof(file_magic));
    wal__put32(out + FILE_KEY_ID, wal__encrypt_newest_id(keyring));
    io->random(io->ctx, out + FILE_SALT, 16);
    wal__put64(out + FILE_SIZE, in.size);
    wal__put64(out + FILE_PAGE_SIZE, page_size);
    status = use_file_key(keyring, name, out, &cipher, &bound);
    for (uint64_t page = 0; page < pages_of(in.size, page_size) && status == WAL_OK; page++) {
        uint64_t offset;
        const size_t size = find_page(in.size, page_size, page, &offset);
        uint8_t *to = out + FILE_HEADER_SIZE + offset + page * WAL__TAG_SIZE;
        uint8_t nonce[WAL__NONCE_SIZE];

        page_nonce(page, nonce);
        status = wal__cipher_encrypt(&cipher, nonce, (struct wal__span){bound.bytes, WAL__KEY_SIZE},
                                     (struct wal__span){in.data + offset, size}, to, to + size);
    }
    wal__cipher_deinit(&cipher);
    return status;
}

bool wal__file_is_encrypted(struct wal__span stored)
{
    return stored.size >= FILE_HEADER_SIZE &&
           memcmp(stored.data, file_magic, sizeof(file_magic)) == 0;
}

uint64_t wal__decrypted_size(struct wal__span stored)
{
    uint64_t size;

    if (!wal__file_is_encrypted(stored)) {
        return 0;
    }
    size = wal__get64(stored.data + FILE_SIZE);
    return size <= stored.size && wal__encrypted_size(
                                      size, wal__get64(stored.data + FILE_PAGE_SIZE)) == stored.size
               ? size
               : 0;
}

enum wal_status wal__decrypt_file(struct wal__keyring *keyring, const char *name,
                                  struct wal__span stored, uint8_t *out)
{
    struct wal__encrypted_file file;
    enum wal_status status = wal__encrypted_file_init(&file, keyring, name, stored);

    if (status == WAL_OK) {
        status = wal__encrypted_file_read(&file, 0, pages_of(file.size, file.page_size), out);
    }
    wal__encrypted_file_deinit(&file);
    return status;
}

enum wal_status wal__encrypted_file_init(struct wal__encrypted_file *file,
                                         struct wal__keyring *keyring, const char *name,
                                         struct wal__span stored)
{
    memset(file, 0, sizeof(*file));
    file->stored = stored;
    file->size = wal__decrypted_size(stored);
    if (file->size == 0) {
        return WAL_ECORRUPT;
    }
    file->page_size = wal__get64(stored.data + FILE_PAGE_SIZE);
    return use_file_key(keyring, name, stored.data, &file->cipher, &file->bound);
}

void wal__encrypted_file_deinit(struct wal__encrypted_file *file)
{
    wal__cipher_deinit(&file->cipher);
}

enum wal_status wal__encrypted_file_read(struct wal__encrypted_file *file, uint64_t first_page,
                                         uint64_t count, uint8_t *content)
{
    enum wal_status status = WAL_OK;

    WAL__ASSERT(first_page + count <= pages_of(file->size, file->page_size));
    for (uint64_t page = first_page; page < first_page + count && status == WAL_OK; page++) {
        uint64_t offset;
        const size_t size = find_page(file->size, file->page_size, page, &offset);
        const uint8_t *from = file->stored.data + FILE_HEADER_SIZE + offset + page * WAL__TAG_SIZE;
        uint8_t nonce[WAL__NONCE_SIZE];

        page_nonce(page, nonce);
        status = wal__cipher_decrypt(&file->cipher, nonce,
                                     (struct wal__span){file->bound.bytes, WAL__KEY_SIZE},
                                     (struct wal__span){from, size}, content + offset, from + size);
    }
    return status;
}
