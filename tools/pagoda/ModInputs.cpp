//===- ModInputs.cpp - A user's mods and the tensors they read ------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/pagoda/ModInputs.h"

#include "compiler/import/AuxTensor.h"

#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace pagoda {

/// Reads `wanted` into `values`, and its place into `aux`.
template <typename T, typename Source>
static llvm::Error readTensor(const SafetensorsFile &file,
                              const AuxTensor &wanted, Expected<Source> source,
                              std::vector<T> &values, pagoda_aux_tensor &aux) {
  if (!source)
    return source.takeError();
  const Tensor &tensor = file.tensors().at(wanted.name);
  for (auto value : *source) {
    if (T(value) != value && value == value)
      return createStringError(formatv("{0}: tensor '{1}': {2} is no i32",
                                       file.name(), wanted.name, value));
    values.push_back(T(value));
  }
  if (values.empty())
    return createStringError(
        formatv("{0}: tensor '{1}': expected at least one element, got {2}",
                file.name(), wanted.name, tensor.text()));
  aux.data = values.data();
  aux.rank = int32_t(wanted.rank);
  int64_t stride = 1;
  for (int64_t dim = wanted.rank; dim-- > 0;) {
    aux.shape[dim] = tensor.shape[dim];
    aux.strides[dim] = stride;
    stride *= tensor.shape[dim];
  }
  return llvm::Error::success();
}

Expected<std::unique_ptr<ModInputs>>
ModInputs::read(StringRef text, StringRef path, StringRef tensors) {
  auto result = std::make_unique<ModInputs>();
  Expected<std::unique_ptr<ModEvaluator>> evaluator =
      ModEvaluator::create(text, path);
  if (!evaluator)
    return evaluator.takeError();
  result->evaluator = std::move(*evaluator);
  const std::vector<AuxTensor> &wanted = result->evaluator->aux();
  if (wanted.empty())
    return result;
  if (tensors.empty())
    return createStringError("--aux: expected a file with tensor '" +
                             wanted.front().name + "', which " + path +
                             " reads");
  Expected<SafetensorsFile> file = SafetensorsFile::open(tensors);
  if (!file)
    return file.takeError();
  result->aux.resize(wanted.size());
  result->floats.resize(wanted.size());
  result->integers.resize(wanted.size());
  for (auto [i, tensor] : enumerate(wanted)) {
    pagoda_aux_tensor &aux = result->aux[i];
    size_t rank = size_t(tensor.rank);
    aux.dtype = tensor.isFloat ? int32_t(PAGODA_F32) : PAGODA_AUX_I32;
    llvm::Error error =
        tensor.isFloat
            ? readTensor(*file, tensor, file->floats(tensor.name, rank),
                         result->floats[i], aux)
            : readTensor(*file, tensor, file->integers(tensor.name, rank),
                         result->integers[i], aux);
    if (error)
      return std::move(error);
  }
  result->evaluator->bind(result->aux.data());
  return result;
}

void ModInputs::attach(pagoda_attention_args &args) const {
  args.aux = aux.data();
  args.aux_count = int32_t(aux.size());
}

void ModInputs::attach(reference::Problem &problem) const {
  problem.maskMod = [this](int64_t seq, int64_t head, int64_t q, int64_t kv) {
    return evaluator->mask(seq, head, q, kv);
  };
  problem.scoreMod = [this](double score, int64_t seq, int64_t head, int64_t q,
                            int64_t kv) {
    return evaluator->score(score, seq, head, q, kv);
  };
}

} // namespace pagoda
