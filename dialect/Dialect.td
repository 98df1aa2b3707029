//===- Dialect.td - The pagoda dialect ---------------------*- tablegen -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_DIALECT_DIALECT
#define PAGODA_DIALECT_DIALECT

include "mlir/IR/OpBase.td"

def Pagoda_Dialect : Dialect {
  let name = "pagoda";
  let cppNamespace = "::pagoda";
  let summary = "Paged attention: what to compute, and how to tile it";
  let description = [{
    Two levels share one vocabulary. The *attention level* says what is
    computed: attention of a ragged batch of queries over a paged KV cache, and
    which scores count. The *tiled level* says how: work items, query tiles held
    in place, KV tiles visited through the block table, an online softmax. Both
    are free of any target; targets lower the tiled level op by op.

    The numbered constraints that verifiers cite are listed in
    `dialect/README.md`.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{ void registerTypes(); }];
}

#endif // PAGODA_DIALECT_DIALECT
