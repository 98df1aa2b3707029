//===- Support.cpp - What the Ampere path takes, and what it makes --------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The two ends of a kernel's lowering: which kernels are refused, with the
// field, what is expected and what came, and how a lowered one is described to
// callers.
//
//===----------------------------------------------------------------------===//

#include "compiler/target/nvidia/Fragment.h"
#include "compiler/target/nvidia/ampere/Lowering.h"
#include "compiler/tiling/SelectTiles.h"
#include "compiler/tiling/SramFit.h"

using namespace mlir;
using namespace pagoda;

LogicalResult AmpereLowering::checkSupported() {
  auto refuse = [&]() { return kernel.emitOpError(); };
  Type element = kernel.getQType();
  if (!element.isF16() && !element.isBF16())
    return refuse() << "q_type must be f16 or bf16 on nvidia, got " << element;
  if (cache.getElt() != element)
    return refuse() << "cache elt must be q_type, " << element
                    << ", on nvidia, got " << cache.getElt();
  if (kernel.getRole() == Role::merge)
    return success();
  llvm::Expected<Machine> named = Machine::named(kernel.getTarget()->getName());
  if (!named)
    return refuse() << llvm::toString(named.takeError());
  if (named->kind != TargetKind::Nvidia)
    return refuse() << "target must be an nvidia machine, got " << named->name;
  machine = *named;
  if (kernel.getRole() != Role::attention)
    return refuse() << "role " << stringifyRole(kernel.getRole())
                    << " has no kernel on nvidia yet, expected attention or "
                       "merge";
  for (auto [name, dim] : {std::pair("k_dim", cache.getKDim()),
                           std::pair("v_dim", cache.getVDim())})
    if (dim > mostGpuHeadDim)
      return refuse() << "cache " << name << " must be at most "
                      << mostGpuHeadDim << " on nvidia, got " << dim;
  if (schedule.getOrder() != LoopOrder::q_outer &&
      schedule.getOrder() != LoopOrder::split_kv)
    return refuse() << "schedule order must be q_outer or split_kv on nvidia, "
                       "got "
                    << stringifyLoopOrder(schedule.getOrder());
  if (schedule.getHeads() != 1)
    return refuse() << "schedule heads must be 1 on nvidia, got "
                    << schedule.getHeads();
  int64_t rows = schedule.getWarps() * Fragment::rowsPerWarp;
  if (schedule.getQTile() != rows || schedule.getWarps() > 32)
    return refuse() << "schedule q_tile must be 16 rows for each of at most 32 "
                       "warps on nvidia, got "
                    << schedule.getQTile() << " rows and "
                    << schedule.getWarps() << " warps";
  if (rows < group)
    return refuse() << "schedule q_tile must hold the " << group
                    << " query heads of a kv head, got " << rows;
  if (schedule.getKvTile() % 16 != 0)
    return refuse() << "schedule kv_tile must be a multiple of 16 on nvidia, "
                       "got "
                    << schedule.getKvTile();
  WalkResult layouts = kernel.walk([&](Operation *op) {
    for (Value result : op->getResults()) {
      auto tile = dyn_cast<TileType>(result.getType());
      if (tile && !isa_and_present<FragmentLayoutAttr>(tile.getLayout())) {
        op->emitOpError() << "tile " << tile
                          << " has no #pagoda.fragment: run "
                             "pagoda-nvidia-assign-layouts first";
        return WalkResult::interrupt();
      }
    }
    return WalkResult::advance();
  });
  return failure(layouts.wasInterrupted());
}

int64_t AmpereLowering::claimedBlocks() {
  if (kernel.getRole() == Role::merge)
    return 1;
  AttentionSpec spec;
  spec.qHeads = kernel.getQHeads();
  spec.kvHeads = cache.getHeads();
  spec.headDim = cache.getKDim();
  spec.vHeadDim = cache.getVDim();
  spec.qType = spec.kvType = element().isF16() ? DType::F16 : DType::BF16;
  return evaluate(fromAttr(schedule), machine, spec, /*explain=*/false)
      .claim->blocks;
}

KernelDescription AmpereLowering::describe() {
  KernelDescription result;
  result.symbol = kernel.getSymName().str();
  result.target = ("nvidia:" + kernel.getTarget()->getName()).str();
  llvm::raw_string_ostream(result.schedule) << schedule;
  bool merges = kernel.getRole() == Role::merge;
  pagoda_kernel_info &info = result.info;
  info.role = int32_t(kernel.getRole());
  info.features = uint32_t(kernel.getFeatures());
  if (auto hash = kernel->getAttrOfType<IntegerAttr>("pagoda.mods_hash"))
    info.mods_hash = uint64_t(hash.getInt());
  info.q_heads = int32_t(kernel.getQHeads());
  info.kv_heads = int32_t(cache.getHeads());
  info.head_dim = int32_t(cache.getKDim());
  info.v_head_dim = int32_t(cache.getVDim());
  info.block_size = int32_t(cache.getBlock());
  info.layout = cache.getLayout() == CacheLayout::nhd ? PAGODA_NHD : PAGODA_HND;
  int32_t dtype = element().isF16() ? PAGODA_F16 : PAGODA_BF16;
  info.q_dtype = info.k_dtype = info.v_dtype = info.o_dtype = dtype;
  info.max_rows = int32_t(schedule.getQTile() / group);
  info.heads_per_item = int32_t(schedule.getHeads());
  info.kv_tile = int32_t(schedule.getKvTile());
  info.threads = int32_t(threads());
  info.shared_bytes =
      merges
          ? 0
          : int32_t(qPipelineType().getBytes() + kvPipelineType().getBytes());
  return result;
}
