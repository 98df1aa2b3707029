//===- MakeImage.h - Cases to files -----------------------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TESTS_DEVICE_MAKEIMAGE_H
#define PAGODA_TESTS_DEVICE_MAKEIMAGE_H

#include "tests/conformance/Case.h"
#include "tests/device/CaseImage.h"

namespace pagoda::device {

/// `c`, planned by hand into `c.splits` (1 or more) splits, for the kernels
/// `attention` and `merge` of the file `cubin`; `c` suits a GPU. References
/// come from the oracle.
CaseImage makeImage(const conformance::Case &c,
                    const pagoda_kernel_info &attention,
                    const pagoda_kernel_info &merge, std::string cubin);

} // namespace pagoda::device

#endif // PAGODA_TESTS_DEVICE_MAKEIMAGE_H
