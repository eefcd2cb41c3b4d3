/*
 * import.c - imports of the session files of other programs.
 */
#include "bindings/node/native/base/value.h"
#include "bindings/node/native/exchange/import_report.h"
#include "bindings/node/native/modules.h"
#include "bindings/node/native/store/store.h"

struct import_job {
    struct job job;
    struct wal_slice *paths;
    uint32_t count;
    struct wal_import_options options;
    struct import_reports reports;
};

static enum wal_status tree_run(struct job *job, struct wal_error *error)
{
    struct import_job *self = (struct import_job *)job;
    enum wal_status status =
        wal_import_tree(job->store->wal, self->paths, self->count,
                        &self->options, &self->reports.result, error);

    return list_check(&self->reports.list, status, error);
}

static enum wal_status scan_run(struct job *job, struct wal_error *error)
{
    struct import_job *self = (struct import_job *)job;
    enum wal_status status = wal_import_scan(
        self->paths, self->count, &self->options, &self->reports.result, error);

    return list_check(&self->reports.list, status, error);
}

static napi_value import_finish(struct call *call, struct job *job)
{
    return import_reports_make(call, &((struct import_job *)job)->reports);
}

static const struct job_kind tree_kind = {
    "importTree", sizeof(struct import_job), tree_run, import_finish, NULL};
static const struct job_kind scan_kind = {
    "scanImport", sizeof(struct import_job), scan_run, import_finish, NULL};

/* paths, flags, dialect, exclude, watch */
static napi_value start(struct call *call, struct import_job *self,
                        size_t first)
{
    self->reports.job = &self->job;
    self->reports.result.struct_size = sizeof(self->reports.result);
    self->paths = value_texts(call, call_arg(call, first), true, &self->count);
    import_read_options(call, first + 1, &self->reports, &self->options);
    job_watch_arg(call, &self->job, call_arg(call, first + 4));
    return job_start(call, &self->job);
}

/* importTree(store, paths, OPTIONS, watch) */
static napi_value import_tree(struct call *call)
{
    struct store *store = store_get(call, 0);
    struct import_job *self = job_create(call, &tree_kind, store, NULL);

    return self == NULL ? NULL : start(call, self, 1);
}

/* scanImport(paths, OPTIONS, watch) */
static napi_value scan_import(struct call *call)
{
    struct import_job *self = job_create(call, &scan_kind, NULL, NULL);

    return self == NULL ? NULL : start(call, self, 0);
}

/* --- what is known ------------------------------------------------------ */

/* importDialects() */
static napi_value list_dialects(struct call *call)
{
    napi_value array = make_array(call);
    const char *name;

    for (uint32_t i = 0; (name = wal_import_dialect(i)) != NULL; i++) {
        array_push(call, array, i, make_string(call, name));
    }
    return array;
}

static napi_value make_client(struct call *call,
                              const struct wal_import_client *client,
                              bool has_folder)
{
    napi_value object = make_object(call);

    object_set(call, object, "name", make_string(call, client->name));
    object_set(call, object, "dialect", make_string(call, client->dialect));
    object_set(call, object, "folder",
               has_folder ? make_string(call, client->folder)
                          : make_null(call));
    return object;
}

/* importClients() */
static napi_value list_clients(struct call *call)
{
    struct wal_import_client client = WAL_INIT(wal_import_client);
    napi_value array = make_array(call);
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; !call->failed && status != WAL_END; i++) {
        status = wal_import_client(i, &client, call_error(call));
        if (status == WAL_OK || status == WAL_ENOTFOUND) {
            array_push(call, array, i,
                       make_client(call, &client, status == WAL_OK));
        } else {
            (void)call_check(call, status);
        }
    }
    return array;
}

const struct call_method import_methods[] = {
    {"importTree", import_tree},
    {"scanImport", scan_import},
    {"importDialects", list_dialects},
    {"importClients", list_clients},
    {NULL, NULL},
};
