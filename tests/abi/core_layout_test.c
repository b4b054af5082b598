/* core.h is frozen: its constants, and where each field lies on 64-bit machines, never change. Compiled as
 * C11; the asserts are the test. A line may be added for a field that was added at an end, never altered. */
#include <stddef.h>

#include "tenon/abi/core.h"
#include "tenon/abi/run.h"

#define AT(type, field, offset) _Static_assert(offsetof(type, field) == (offset), #type "." #field " moved")

_Static_assert(TN_ABI_MAJOR == 1u, "a new major is a new boundary");
_Static_assert(sizeof(void*) == 8, "the layout below is that of 64-bit machines");
_Static_assert(sizeof(tn_str) == 16, "tn_str");
AT(tn_str, data, 0);
AT(tn_str, size, 8);
_Static_assert(TN_OK == 0 && TN_ERR_INVALID == 1 && TN_ERR_UNSUPPORTED == 2 && TN_ERR_NOT_FOUND == 3 &&
                   TN_ERR_LIMIT == 4 && TN_ERR_MEMORY == 5 && TN_ERR_IO == 6 && TN_ERR_INTERNAL == 7 &&
                   TN_DECLINED == 8,
               "statuses");
_Static_assert(TN_SEVERITY_DEBUG == 0 && TN_SEVERITY_INFO == 1 && TN_SEVERITY_WARNING == 2 &&
                   TN_SEVERITY_ERROR == 3 && TN_SEVERITY_PLUGIN_MISBEHAVING == 4 &&
                   TN_SEVERITY_HOST_MISBEHAVING == 5,
               "severities");
AT(tn_diag, size, 0);
AT(tn_diag, context, 8);
AT(tn_diag, report, 16);
AT(tn_host, size, 0);
AT(tn_host, abi_major, 4);
AT(tn_host, abi_minor, 8);
AT(tn_host, version, 16);
AT(tn_host, get_interface, 32);
AT(tn_plugin, size, 0);
AT(tn_plugin, abi_major, 4);
AT(tn_plugin, min_host_minor, 8);
AT(tn_plugin, built_host_minor, 12);
AT(tn_plugin, id, 16);
AT(tn_plugin, name, 32);
AT(tn_plugin, version, 48);
AT(tn_plugin, vendor, 64);
AT(tn_plugin, license, 80);
AT(tn_plugin, summary, 96);
AT(tn_plugin, interfaces, 112);
AT(tn_plugin, interface_count, 120);
AT(tn_plugin, cpu_features, 128);
AT(tn_plugin, get_interface, 136);
AT(tn_plugin, open, 144);
AT(tn_plugin, close, 152);
/* The hot path's arguments fill one cache line. */
_Static_assert(sizeof(tn_kernel_args) == 64, "tn_kernel_args");

int main(void) { return 0; }
