/*
 * status.c - a table of names (status.h).
 */
#include "bindings/node/native/base/status.h"

#include <agentwal.h>
#include <stddef.h>

static const char *const codes[] = {
    [0] = "WAL_OK",
    [-WAL_EINVAL] = "WAL_EINVAL",
    [-WAL_ENOTFOUND] = "WAL_ENOTFOUND",
    [-WAL_EEXISTS] = "WAL_EEXISTS",
    [-WAL_ECONFLICT] = "WAL_ECONFLICT",
    [-WAL_ETOOBIG] = "WAL_ETOOBIG",
    [-WAL_ENOSPACE] = "WAL_ENOSPACE",
    [-WAL_EIO] = "WAL_EIO",
    [-WAL_ETORN] = "WAL_ETORN",
    [-WAL_ECORRUPT] = "WAL_ECORRUPT",
    [-WAL_EVERSION] = "WAL_EVERSION",
    [-WAL_ELOCKED] = "WAL_ELOCKED",
    [-WAL_EPOISONED] = "WAL_EPOISONED",
    [-WAL_ENOMEM] = "WAL_ENOMEM",
    [-WAL_EBUSY] = "WAL_EBUSY",
    [-WAL_EREADONLY] = "WAL_EREADONLY",
    [-WAL_ENOTSTORE] = "WAL_ENOTSTORE",
    [-WAL_EFORKED] = "WAL_EFORKED",
    [-WAL_ENOPARENT] = "WAL_ENOPARENT",
    [-WAL_EBADJSON] = "WAL_EBADJSON",
    [-WAL_EDAMAGED] = "WAL_EDAMAGED",
    [-WAL_ENETWORK] = "WAL_ENETWORK",
    [-WAL_EDEPENDENCY] = "WAL_EDEPENDENCY",
    [-WAL_ECALLBACK] = "WAL_ECALLBACK",
    [-WAL_ESCHEMA] = "WAL_ESCHEMA",
    [-WAL_EREDACTED] = "WAL_EREDACTED",
    [-WAL_ECLAIMED] = "WAL_ECLAIMED",
    [-WAL_ELIMIT] = "WAL_ELIMIT",
    [-WAL_ELOCKFILE] = "WAL_ELOCKFILE",
    [-WAL_EOUTSIDE] = "WAL_EOUTSIDE",
    [-WAL_ECHANGED] = "WAL_ECHANGED",
    [-WAL_EACCESS] = "WAL_EACCESS",
    [-WAL_ENOTFILE] = "WAL_ENOTFILE",
    [-WAL_ECLOSED] = "WAL_ECLOSED",
    [-WAL_ETRASHED] = "WAL_ETRASHED",
    [-WAL_EREMOTE] = "WAL_EREMOTE",
    [-WAL_EFENCED] = "WAL_EFENCED",
};

const char *status_code(int32_t status)
{
    const int32_t count = (int32_t)(sizeof(codes) / sizeof(codes[0]));

    return status <= 0 && status > -count ? codes[-status] : codes[0];
}
