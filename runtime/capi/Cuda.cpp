//===- Cuda.cpp - The C API of NVIDIA GPUs --------------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "capi/Handles.h"

using namespace pagoda;
using namespace pagoda::capi;

pagoda_status pagoda_cuda_open(int32_t index, pagoda_cuda **out) {
  return created(out, [&] {
    std::string why;
    std::unique_ptr<CudaDevice> device = CudaDevice::open(why, index);
    if (!device)
      throw Error(ErrorCode::NoDevice, "cuda: " + why);
    return new pagoda_cuda{std::move(device)};
  });
}

void pagoda_cuda_close(pagoda_cuda *cuda) { delete cuda; }

pagoda_status pagoda_cuda_launcher_create(pagoda_cuda *cuda,
                                          const pagoda_kernels *kernels,
                                          pagoda_cuda_launcher **out) {
  return created(out, [&] {
    CudaDevice &device = *given(cuda, "cuda").object;
    const pagoda_kernels &k = given(kernels, "kernels");
    if (!k.library.image())
      throw Error(ErrorCode::InvalidArgument,
                  "kernels: expected a library for a GPU, got " +
                      k.library.name());
    return new pagoda_cuda_launcher{{device, k.set, *k.library.image()}};
  });
}

void pagoda_cuda_launcher_destroy(pagoda_cuda_launcher *launcher) {
  delete launcher;
}

int32_t pagoda_cuda_threads(const pagoda_cuda_launcher *launcher) {
  return launcher ? launcher->object.threads() : 0;
}

pagoda_status pagoda_cuda_reserve(pagoda_cuda_launcher *launcher,
                                  const pagoda_plan_info *most) {
  return guarded([&] {
    const pagoda_plan_info &m = given(most, "most");
    // Each partial state is joined once.
    given(launcher, "launcher")
        .object.reserve(
            {m.items, m.rows, m.merges, m.partial_slots, m.partial_slots});
    return PAGODA_OK;
  });
}

pagoda_status pagoda_cuda_upload(pagoda_cuda_launcher *launcher,
                                 const pagoda_plan *plan, void *stream) {
  return guarded([&] {
    given(launcher, "launcher")
        .object.upload(given(plan, "plan").object, stream);
    return PAGODA_OK;
  });
}

pagoda_status pagoda_cuda_attention(pagoda_cuda_launcher *launcher,
                                    const pagoda_attention_args *args,
                                    void *stream) {
  return guarded([&] {
    given(launcher, "launcher").object.run(given(args, "args"), stream);
    return PAGODA_OK;
  });
}

pagoda_status pagoda_cuda_append(pagoda_cuda_launcher *launcher,
                                 const pagoda_append_args *args, int64_t tokens,
                                 void *stream) {
  return guarded([&] {
    given(launcher, "launcher")
        .object.append(given(args, "args"), tokens, stream);
    return PAGODA_OK;
  });
}

pagoda_status pagoda_cuda_copy(pagoda_cuda_launcher *launcher,
                               const pagoda_copy_args *args, int64_t copies,
                               void *stream) {
  return guarded([&] {
    given(launcher, "launcher")
        .object.copy(given(args, "args"), copies, stream);
    return PAGODA_OK;
  });
}
