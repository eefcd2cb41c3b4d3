#include <agentwal.h>

int main(void)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_store_info info = {.struct_size = sizeof(info)};
    struct wal_store *store = 0;

    return wal_open("store", 0, &store, &error) != WAL_OK ||
           wal_store_status(store, &info, &error) != WAL_OK;
}
