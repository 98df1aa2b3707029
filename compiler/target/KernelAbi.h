//===- KernelAbi.h - The argument structs as the IR sees them ---*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one place where the compiler reads kernel_abi.h's layout: fields by name
// as byte offsets and types, the kernel description that travels from lowering
// to emission, and the library table that a module exports.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TARGET_KERNELABI_H
#define PAGODA_COMPILER_TARGET_KERNELABI_H

#include "runtime/include/pagoda/kernel_abi.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace llvm {
class Module;
}

namespace pagoda {

/// How a field is held in its struct.
enum class FieldType { Pointer, I32, I64, F32 };

struct AbiField {
  int64_t offset; ///< bytes
  FieldType type;
};

/// A field of pagoda_attention_args by its C spelling, for example "k.base".
/// The name must exist.
AbiField attentionField(llvm::StringRef name);

/// The same for pagoda_append_args and pagoda_copy_args.
AbiField appendField(llvm::StringRef name);
AbiField copyField(llvm::StringRef name);

/// A field of pagoda_work_item or pagoda_merge_item; all are i32.
AbiField itemField(llvm::StringRef name);
AbiField mergeField(llvm::StringRef name);

/// The LLVM dialect type of a field.
mlir::Type fieldType(mlir::MLIRContext *context, FieldType type);

/// The pagoda_dtype of an element type of dialect/README.md's Y2.
int32_t dtypeOf(mlir::Type element);

/// pagoda_kernel_info with owned strings and no code pointer: what lowering
/// knows of a kernel. `info.name` and the like are null; use the strings.
struct KernelDescription {
  std::string symbol; ///< of the entry function
  std::string target;
  std::string schedule;
  pagoda_kernel_info info{};
};

/// Attaches `description` to a lowered kernel function, and reads the
/// descriptions of all kernels of a module back, in order.
void setDescription(mlir::LLVM::LLVMFuncOp function,
                    const KernelDescription &description);
std::vector<KernelDescription> descriptionsOf(mlir::ModuleOp module);

/// Adds the exported `pagoda_library` table to a translated module.
void addLibraryTable(llvm::Module &module,
                     llvm::ArrayRef<KernelDescription> kernels);

} // namespace pagoda

#endif // PAGODA_COMPILER_TARGET_KERNELABI_H
