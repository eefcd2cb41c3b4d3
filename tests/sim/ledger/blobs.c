/*
 * blobs.c - content in the ledger, and what a store has of it (ledger.h).
 */
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "agentwal/blob.h"
#include "format/bytes/assert.h"
#include "tests/sim/ledger/internal.h"

/* Letters, and one place in the middle that the edit changes. */
uint8_t *ledger_blob_bytes(const struct ledger_blob *blob)
{
    uint8_t *bytes = malloc((size_t)blob->size + 1);

    WAL__ASSERT(bytes != NULL && blob->size <= LEDGER_PAYLOAD_MAX);
    memcpy(bytes, ledger_pattern(blob->seed), blob->size);
    if (blob->size > 8) {
        memcpy(bytes + blob->size / 2, &blob->edit, sizeof(blob->edit));
    }
    return bytes;
}

uint32_t ledger_add_blob(struct ledger *ledger, uint32_t seed, uint32_t size,
                         uint32_t edit)
{
    uint32_t number = ledger->blob_count;
    struct ledger_blob *blob = &ledger->blobs[number];
    uint8_t *bytes;

    WAL__ASSERT(number < LEDGER_BLOBS);
    *blob = (struct ledger_blob){
        .seed = seed, .size = size, .edit = edit, .state = LEDGER_OPEN};
    bytes = ledger_blob_bytes(blob);
    WAL__ASSERT(
        EVP_Digest(bytes, size, blob->digest, NULL, EVP_sha256(), NULL) == 1);
    free(bytes);
    for (uint32_t i = 0; i < number; i++) {
        if (memcmp(ledger->blobs[i].digest, blob->digest, WAL_DIGEST_SIZE) ==
            0) {
            return i;
        }
    }
    ledger->blob_count++;
    return number;
}

/* Reads one that could be opened. */
static enum wal_status compare(const struct ledger_blob *recorded,
                               uint32_t number, struct wal_blob *blob,
                               struct wal_error *error)
{
    uint8_t *expected = ledger_blob_bytes(recorded);
    uint8_t *bytes = malloc((size_t)recorded->size + 1);
    enum wal_status status;
    uint64_t got = 0;

    WAL__ASSERT(bytes != NULL);
    if (wal_blob_size(blob) != recorded->size) {
        ledger_fail("blob %u has %llu bytes, not %u", number,
                    (unsigned long long)wal_blob_size(blob), recorded->size);
    }
    status = wal_blob_read(blob, 0, bytes, (uint64_t)recorded->size + 1, &got,
                           error);
    if (status == WAL_OK && (got != recorded->size ||
                             memcmp(bytes, expected, recorded->size) != 0)) {
        ledger_fail("blob %u is not what was put", number);
    }
    free(bytes);
    free(expected);
    return status;
}

enum wal_status ledger_read_blob(const struct ledger *ledger,
                                 struct wal_store *store, uint32_t number,
                                 struct wal_error *error)
{
    const struct ledger_blob *recorded = &ledger->blobs[number];
    struct wal_blob *blob = NULL;
    enum wal_status status =
        wal_blob_open(store, recorded->digest, &blob, error);

    if (status == WAL_OK) {
        status = compare(recorded, number, blob, error);
        wal_blob_close(blob);
    }
    return status;
}

void ledger_check_blobs(struct ledger_checker *checker, enum ledger_loss loss)
{
    const struct ledger *ledger = checker->ledger;
    enum ledger_state needed =
        loss == LEDGER_POWER_LOSS ? LEDGER_DURABLE : LEDGER_WRITTEN;

    for (uint32_t i = 0; i < ledger->blob_count; i++) {
        const struct ledger_blob *recorded = &ledger->blobs[i];
        struct wal_error error = {.struct_size = sizeof(error)};
        enum wal_status status =
            ledger_read_blob(ledger, checker->store, i, &error);

        if (status != WAL_OK && status != WAL_ENOTFOUND) {
            ledger_fail("blob %u cannot be read: %d %s (%s at %llu)", i, status,
                        error.text, error.file,
                        (unsigned long long)error.offset);
        }
        if (status == WAL_ENOTFOUND && recorded->state >= needed) {
            ledger_fail("blob %u (%u bytes, state %d) was promised and is lost",
                        i, recorded->size, recorded->state);
        }
        if (status == WAL_OK && recorded->state == LEDGER_REFUSED) {
            ledger_fail("blob %u was not there, and is", i);
        }
        if (status == WAL_OK) {
            checker->view->blobs[i] = true;
            ledger_mix(checker, i);
        }
    }
}
