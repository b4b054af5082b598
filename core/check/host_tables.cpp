#include "core/check/host_tables.hpp"

#include <tenon/abi/decompose.h>
#include <tenon/abi/eval.h>
#include <tenon/abi/files.h>
#include <tenon/abi/graph.h>
#include <tenon/abi/graph_edit.h>
#include <tenon/abi/kernel_registry.h>
#include <tenon/abi/limits.h>
#include <tenon/abi/ops.h>
#include <tenon/abi/symbols.h>
#include <tenon/abi/transforms.h>

#include <cstddef>
#include <cstring>

namespace tenon::check {

namespace {

// Through this field, itself included.
#define THROUGH(Table, field) (offsetof(Table, field) + sizeof(Table::field))

constexpr ServiceInfo all_services[] = {
    {TN_GRAPH_ID, "reading graphs", THROUGH(tn_graph_api, default_of)},
    {TN_GRAPH_EDIT_ID, "editing graphs", THROUGH(tn_edit_api, clone_node)},
    {TN_SYMBOLS_ID, "symbols", THROUGH(tn_symbols_api, text)},
    {TN_FILES_ID, "files", THROUGH(tn_files_api, close)},
    {TN_LIMITS_ID, "limits", THROUGH(tn_limits_api, may_allocate)},
    {TN_REGISTRY_ID, "the operators' registry", THROUGH(tn_registry_api, domain_version)},
    {TN_KERNEL_REGISTRY_ID, "the kernels' registry", THROUGH(tn_kernel_registry_api, has_kernel_on)},
    {TN_TRANSFORM_REGISTRY_ID, "the transforms' registry", THROUGH(tn_transform_registry_api, at)},
    {TN_DECOMPOSE_ID, "decompositions", THROUGH(tn_decompose_api, decompose)},
    {TN_EVAL_ID, "evaluation", THROUGH(tn_eval_api, run)},
};

constexpr uint32_t tail_bytes = 256;
constexpr uint64_t no_function = 0xdead'dead'dead'deadu;  // no address: using it is SIGSEGV

}  // namespace

std::span<const ServiceInfo> services() { return all_services; }

TableVariant::TableVariant(const void* table, uint32_t size) {
  const uint32_t own = *static_cast<const uint32_t*>(table);
  bytes_.assign((std::max(own, size) + tail_bytes) / sizeof(uint64_t), no_function);
  std::memcpy(bytes_.data(), table, std::min(own, size));
  *reinterpret_cast<uint32_t*>(bytes_.data()) = size;
}

}  // namespace tenon::check
