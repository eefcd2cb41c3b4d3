#include <agentwal.h>
#include <stdio.h>

int main(void)
{
    struct wal_error error = WAL_INIT(wal_error);
    struct wal_entry entry = WAL_INIT(wal_entry);
    static const char text[] = "static";

    entry.type = WAL_STR(WAL_TYPE_MESSAGE);
    entry.id = WAL_STR("one");
    (void)text;
    printf("%.*s\n", WAL_ARG(entry.id));
    return error.struct_size == sizeof(error) && entry.flags == 0 ? 0 : 1;
}
