//===- FakeDriver.h - What tests ask the fake CUDA driver -------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TESTS_DEVICE_FAKEDRIVER_H
#define PAGODA_TESTS_DEVICE_FAKEDRIVER_H

extern "C" {
/// The call `name`, after `after` more that succeed, returns `code`, once.
void fakeCudaFail(const char *name, int after, int code);
/// How often `name` has been called.
int fakeCudaCalls(const char *name);
/// Device allocations that nobody has released.
int fakeCudaAllocations();
/// What the emulator reported of the last launch.
const char *fakeCudaFault();
}

#endif // PAGODA_TESTS_DEVICE_FAKEDRIVER_H
