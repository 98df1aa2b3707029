//===- Safetensors.h - Reads and writes .safetensors files ------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The safetensors container: 8 bytes of header length (little endian), a JSON
// header {name: {dtype, shape, data_offsets}}, then the tensors' bytes, row
// major. Any file is safe to open: what the header claims is checked against
// the file before a tensor is handed out. Which tensors mean what is the
// caller's business.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TOOLS_PAGODA_SAFETENSORS_H
#define PAGODA_TOOLS_PAGODA_SAFETENSORS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace pagoda {

/// One tensor. `data` has no alignment.
struct Tensor {
  std::string dtype; ///< as in the file: "F32", "BF16", "I64", ...
  std::vector<int64_t> shape;
  llvm::StringRef data;

  int64_t elements() const;
  /// "F32 [3, 4]".
  std::string text() const;
};

class SafetensorsFile {
public:
  /// Maps and checks the file at `path`. Errors name the file and, where one is
  /// at fault, the tensor and its field.
  static llvm::Expected<SafetensorsFile> open(llvm::StringRef path);
  /// The same on a buffer; its identifier names it in errors.
  static llvm::Expected<SafetensorsFile>
  parse(std::unique_ptr<llvm::MemoryBuffer> buffer);

  const std::string &name() const { return fileName; }
  const std::map<std::string, Tensor> &tensors() const { return entries; }

  /// The tensor `name`, of `rank` dimensions. An error lists what there is.
  llvm::Expected<const Tensor *> get(llvm::StringRef name, size_t rank) const;
  /// A floating-point tensor as f32: F32, F16, BF16, F64 (rounded).
  llvm::Expected<std::vector<float>> floats(llvm::StringRef name,
                                            size_t rank) const;
  /// An integer tensor: I32 or I64.
  llvm::Expected<std::vector<int64_t>> integers(llvm::StringRef name,
                                                size_t rank) const;

private:
  std::string fileName;
  std::unique_ptr<llvm::MemoryBuffer> buffer;
  std::map<std::string, Tensor> entries;
};

/// Writes `tensors` to `path`, in the map's order.
llvm::Error writeSafetensors(llvm::StringRef path,
                             const std::map<std::string, Tensor> &tensors);

} // namespace pagoda

#endif // PAGODA_TOOLS_PAGODA_SAFETENSORS_H
