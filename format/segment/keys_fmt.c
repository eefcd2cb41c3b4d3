/*
 * keys_fmt.c - encodes and decodes the file KEYS (keys_fmt.h; SPEC.md 8.1).
 */
#include "format/segment/keys_fmt.h"

#include "format/bytes/crc32.h"

enum {
    AT_MAGIC = 0,
    AT_VERSION = AT_MAGIC + 8,
    AT_SLOT_COUNT = AT_VERSION + 4,
    AT_KEY_COUNT = AT_SLOT_COUNT + 4,
    AT_ZERO = AT_KEY_COUNT + 4,
    AT_UUID = AT_ZERO + 4,
    AT_GENERATION = AT_UUID + 16,
    AT_PLAIN_LOG = AT_GENERATION + 8,
    AT_PLAIN_PACK = AT_PLAIN_LOG + 8,
    AT_CRC = AT_PLAIN_PACK + 8,
    AT_REST = AT_CRC + 4,
    REST_SIZE = 12
};

WAL__FOLLOWS((int)WAL__KEYS_HEADER_SIZE, (int)AT_REST, (int)REST_SIZE);

enum {
    SLOT_KIND = 0,
    SLOT_ID = SLOT_KIND + 4,
    SLOT_CREATED = SLOT_ID + 4,
    SLOT_LOG2_N = SLOT_CREATED + 8,
    SLOT_R = SLOT_LOG2_N + 1,
    SLOT_P = SLOT_R + 1,
    SLOT_LABEL_SIZE = SLOT_P + 1,
    SLOT_ZERO = SLOT_LABEL_SIZE + 1,
    SLOT_LABEL = SLOT_ZERO + 4,
    SLOT_SALT = SLOT_LABEL + WAL__KEY_LABEL_MAX,
    SLOT_KEY = SLOT_SALT + 16,
    SLOT_REST = SLOT_KEY + 60,
    SLOT_REST_SIZE = 12
};

WAL__FOLLOWS((int)WAL__KEY_SLOT_CLEAR, (int)SLOT_SALT, 16);
WAL__FOLLOWS((int)WAL__KEY_SLOT_SIZE, (int)SLOT_REST, (int)SLOT_REST_SIZE);

enum {
    KEY_ID = 0,
    KEY_SUITE = KEY_ID + 4,
    KEY_CREATED = KEY_SUITE + 4,
    KEY_KEY = KEY_CREATED + 8,
    KEY_REST = KEY_KEY + 60,
    KEY_REST_SIZE = 4
};

WAL__FOLLOWS((int)WAL__DATA_KEY_CLEAR, (int)KEY_CREATED, 8);
WAL__FOLLOWS((int)WAL__DATA_KEY_SIZE, (int)KEY_REST, (int)KEY_REST_SIZE);

enum { SUITE_MAX = 2, SCRYPT_LOG2_N_MAX = 20, SCRYPT_FACTOR_MAX = 16 };

static_assert(WAL__KEYS_HEADER_SIZE + WAL__KEY_SLOTS_MAX * WAL__KEY_SLOT_SIZE +
                      WAL__DATA_KEYS_MAX * WAL__DATA_KEY_SIZE + WAL__KEYS_MAC_SIZE <=
                  WAL__KEYS_COPY_SIZE,
              "a copy of KEYS has no room for all");

static const uint8_t magic[8] = "AGWALKEY";

/* --- encoding ----------------------------------------------------------- */

static void put_wrapped(uint8_t *out, const struct wal__wrapped_key *key)
{
    memcpy(out, key->nonce, sizeof(key->nonce));
    memcpy(out + 12, key->bytes, sizeof(key->bytes));
    memcpy(out + 44, key->tag, sizeof(key->tag));
}

static void put_slot(uint8_t *out, const struct wal__key_slot *slot)
{
    const size_t size = strnlen(slot->label, WAL__KEY_LABEL_MAX);

    memset(out, 0, WAL__KEY_SLOT_SIZE);
    wal__put32(out + SLOT_KIND, slot->kind);
    wal__put32(out + SLOT_ID, slot->id);
    wal__put64(out + SLOT_CREATED, (uint64_t)slot->created_ms);
    out[SLOT_LOG2_N] = slot->log2_n;
    out[SLOT_R] = slot->r;
    out[SLOT_P] = slot->p;
    out[SLOT_LABEL_SIZE] = (uint8_t)size;
    memcpy(out + SLOT_LABEL, slot->label, size);
    memcpy(out + SLOT_SALT, slot->salt, sizeof(slot->salt));
    put_wrapped(out + SLOT_KEY, &slot->key);
}

static void put_key(uint8_t *out, const struct wal__data_key *key)
{
    memset(out, 0, WAL__DATA_KEY_SIZE);
    wal__put32(out + KEY_ID, key->id);
    wal__put32(out + KEY_SUITE, key->suite);
    wal__put64(out + KEY_CREATED, (uint64_t)key->created_ms);
    put_wrapped(out + KEY_KEY, &key->key);
}

static size_t size_of(uint32_t slot_count, uint32_t key_count)
{
    return WAL__KEYS_HEADER_SIZE + (size_t)slot_count * WAL__KEY_SLOT_SIZE +
           (size_t)key_count * WAL__DATA_KEY_SIZE;
}

/* The CRC of all bytes but its own four and the MAC. */
static uint32_t crc_of(const uint8_t *bytes, size_t size)
{
    return wal__crc32(wal__crc32(0, bytes, AT_CRC), bytes + AT_REST, size - AT_REST);
}

size_t wal__keys_encode(const struct wal__keys_file *file, uint8_t out[WAL__KEYS_COPY_SIZE])
{
    const size_t size = size_of(file->slot_count, file->key_count);
    uint8_t *at = out + WAL__KEYS_HEADER_SIZE;

    WAL__ASSERT(file->slot_count <= WAL__KEY_SLOTS_MAX && file->key_count <= WAL__DATA_KEYS_MAX);
    memset(out, 0, WAL__KEYS_COPY_SIZE);
    memcpy(out + AT_MAGIC, magic, sizeof(magic));
    wal__put32(out + AT_VERSION, WAL__KEYS_VERSION);
    wal__put32(out + AT_SLOT_COUNT, file->slot_count);
    wal__put32(out + AT_KEY_COUNT, file->key_count);
    memcpy(out + AT_UUID, file->uuid, sizeof(file->uuid));
    wal__put64(out + AT_GENERATION, file->generation);
    wal__put64(out + AT_PLAIN_LOG, file->plain_ids[0]);
    wal__put64(out + AT_PLAIN_PACK, file->plain_ids[1]);
    for (uint32_t i = 0; i < file->slot_count; i++, at += WAL__KEY_SLOT_SIZE) {
        put_slot(at, &file->slots[i]);
    }
    for (uint32_t i = 0; i < file->key_count; i++, at += WAL__DATA_KEY_SIZE) {
        put_key(at, &file->keys[i]);
    }
    wal__put32(out + AT_CRC, crc_of(out, size));
    return size;
}

size_t wal__key_slot_bound(const uint8_t uuid[16], const struct wal__key_slot *slot,
                           uint8_t out[WAL__KEY_BOUND_MAX])
{
    uint8_t bytes[WAL__KEY_SLOT_SIZE];

    put_slot(bytes, slot);
    memcpy(out, uuid, 16);
    memcpy(out + 16, bytes, WAL__KEY_SLOT_CLEAR);
    return 16 + WAL__KEY_SLOT_CLEAR;
}

size_t wal__data_key_bound(const uint8_t uuid[16], const struct wal__data_key *key,
                           uint8_t out[WAL__KEY_BOUND_MAX])
{
    uint8_t bytes[WAL__DATA_KEY_SIZE];

    put_key(bytes, key);
    memcpy(out, uuid, 16);
    memcpy(out + 16, bytes, WAL__DATA_KEY_CLEAR);
    return 16 + WAL__DATA_KEY_CLEAR;
}

/* --- decoding ----------------------------------------------------------- */

static void get_wrapped(const uint8_t *at, struct wal__wrapped_key *key)
{
    memcpy(key->nonce, at, sizeof(key->nonce));
    memcpy(key->bytes, at + 12, sizeof(key->bytes));
    memcpy(key->tag, at + 44, sizeof(key->tag));
}

static enum wal__fmt decode_slot(const uint8_t *at, struct wal__key_slot *slot)
{
    const uint8_t size = at[SLOT_LABEL_SIZE];
    const bool has_scrypt = at[SLOT_LOG2_N] != 0;

    memset(slot, 0, sizeof(*slot));
    slot->kind = wal__get32(at + SLOT_KIND);
    slot->id = wal__get32(at + SLOT_ID);
    slot->created_ms = (int64_t)wal__get64(at + SLOT_CREATED);
    slot->log2_n = at[SLOT_LOG2_N];
    slot->r = at[SLOT_R];
    slot->p = at[SLOT_P];
    if ((slot->kind != WAL__KEY_SLOT_SECRET && slot->kind != WAL__KEY_SLOT_PASSPHRASE) ||
        has_scrypt != (slot->kind == WAL__KEY_SLOT_PASSPHRASE) ||
        slot->log2_n > SCRYPT_LOG2_N_MAX || slot->r > SCRYPT_FACTOR_MAX ||
        slot->p > SCRYPT_FACTOR_MAX || has_scrypt != (slot->r != 0) ||
        has_scrypt != (slot->p != 0) || slot->id == 0 || size > WAL__KEY_LABEL_MAX ||
        wal__get32(at + SLOT_ZERO) != 0 ||
        !wal__is_zero(at + SLOT_LABEL + size, WAL__KEY_LABEL_MAX - (size_t)size) ||
        !wal__is_zero(at + SLOT_REST, SLOT_REST_SIZE)) {
        return WAL__FMT_FIELD;
    }
    memcpy(slot->label, at + SLOT_LABEL, size);
    memcpy(slot->salt, at + SLOT_SALT, sizeof(slot->salt));
    get_wrapped(at + SLOT_KEY, &slot->key);
    return WAL__FMT_OK;
}

static enum wal__fmt decode_key(const uint8_t *at, struct wal__data_key *key)
{
    key->id = wal__get32(at + KEY_ID);
    key->suite = wal__get32(at + KEY_SUITE);
    key->created_ms = (int64_t)wal__get64(at + KEY_CREATED);
    get_wrapped(at + KEY_KEY, &key->key);
    return key->id != 0 && key->suite >= 1 && key->suite <= SUITE_MAX &&
                   wal__is_zero(at + KEY_REST, KEY_REST_SIZE)
               ? WAL__FMT_OK
               : WAL__FMT_FIELD;
}

enum wal__fmt wal__keys_decode(const uint8_t at[WAL__KEYS_COPY_SIZE], struct wal__keys_file *file,
                               size_t *size)
{
    const uint8_t *from = at + WAL__KEYS_HEADER_SIZE;
    enum wal__fmt fmt = WAL__FMT_OK;

    if (memcmp(at + AT_MAGIC, magic, sizeof(magic)) != 0) {
        return WAL__FMT_MAGIC;
    }
    file->slot_count = wal__get32(at + AT_SLOT_COUNT);
    file->key_count = wal__get32(at + AT_KEY_COUNT);
    if (wal__get32(at + AT_VERSION) != WAL__KEYS_VERSION) {
        return WAL__FMT_VERSION;
    }
    if (file->slot_count == 0 || file->slot_count > WAL__KEY_SLOTS_MAX || file->key_count == 0 ||
        file->key_count > WAL__DATA_KEYS_MAX) {
        return WAL__FMT_FIELD;
    }
    *size = size_of(file->slot_count, file->key_count);
    if (crc_of(at, *size) != wal__get32(at + AT_CRC)) {
        return WAL__FMT_HEADER_CRC;
    }
    memcpy(file->uuid, at + AT_UUID, sizeof(file->uuid));
    file->generation = wal__get64(at + AT_GENERATION);
    file->plain_ids[0] = wal__get64(at + AT_PLAIN_LOG);
    file->plain_ids[1] = wal__get64(at + AT_PLAIN_PACK);
    if (file->generation == 0 || wal__get32(at + AT_ZERO) != 0 ||
        !wal__is_zero(at + AT_REST, REST_SIZE)) {
        return WAL__FMT_FIELD;
    }
    for (uint32_t i = 0; i < file->slot_count && fmt == WAL__FMT_OK; i++) {
        fmt = decode_slot(from, &file->slots[i]);
        from += WAL__KEY_SLOT_SIZE;
    }
    for (uint32_t i = 0; i < file->key_count && fmt == WAL__FMT_OK; i++) {
        fmt = decode_key(from, &file->keys[i]);
        from += WAL__DATA_KEY_SIZE;
        if (i > 0 && file->keys[i].id <= file->keys[i - 1].id) {
            fmt = WAL__FMT_FIELD;
        }
    }
    return fmt;
}
