//===- Types.td - Types of the pagoda dialect --------------*- tablegen -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_DIALECT_TYPES
#define PAGODA_DIALECT_TYPES

include "dialect/Dialect.td"
include "dialect/Attributes.td"
include "mlir/IR/AttrTypeBase.td"

class Pagoda_Type<string name, string typeMnemonic, list<Trait> traits = []>
    : TypeDef<Pagoda_Dialect, name, traits> {
  let mnemonic = typeMnemonic;
}

def Pagoda_KvCacheType : Pagoda_Type<"KvCache", "kv_cache"> {
  let summary = "A paged KV cache";
  let description = [{
    Pools of K and V blocks. Position p of a sequence lives in the block that
    the sequence's block table names at `p / block`, in slot `p % block`. K and V
    share block ids; their head dims may differ.

    Example: `!pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 128, block = 16,
    layout = hnd, elt = f32>`
  }];
  let parameters = (ins
    "int64_t":$heads,
    "int64_t":$k_dim,
    "int64_t":$v_dim,
    "int64_t":$block,
    EnumParameter<Pagoda_CacheLayout>:$layout,
    "::mlir::Type":$elt,
    DefaultValuedParameter<"::pagoda::ScaleGranularity", "::pagoda::ScaleGranularity::none">:$scales
  );
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Pagoda_TileType : Pagoda_Type<"Tile", "tile"> {
  let summary = "A logical tile of values: heads x rows x cols";
  let description = [{
    Rows are packed query rows: row r of a tile is query head `r % group` of query
    token `r / group` of the work item. Per-row values (running maximum, sum)
    are tiles of one column. Where the elements live is the layout's business,
    which a target fills in.

    Examples: `!pagoda.tile<1x96x128xf32>`,
    `!pagoda.tile<1x96x128xf32, #pagoda.lanes<rows, panel = 24>>`
  }];
  let parameters = (ins
    "int64_t":$heads,
    "int64_t":$rows,
    "int64_t":$cols,
    "::mlir::Type":$elt,
    OptionalParameter<"::mlir::Attribute">:$layout
  );
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    TileType withLayout(::mlir::Attribute layout) const {
      return get(getContext(), getHeads(), getRows(), getCols(), getElt(), layout);
    }
  }];
}

def Pagoda_KvType : Pagoda_Type<"Kv", "kv"> {
  let summary = "A reference to a run of keys or values: heads x keys x dim";
  let description = [{
    Names cache rows through the block table and moves nothing; a target decides
    what is staged where. Example: `!pagoda.kv<1x64x128xbf16>`
  }];
  let parameters = (ins "int64_t":$heads, "int64_t":$keys, "int64_t":$dim,
                        "::mlir::Type":$elt);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Pagoda_CoordsType : Pagoda_Type<"Coords", "coords"> {
  let summary = "Sequence, query head and position of each row of an item";
  let description = [{ Example: `!pagoda.coords<1x96>` (heads x rows) }];
  let parameters = (ins "int64_t":$heads, "int64_t":$rows);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Pagoda_ArgsType : Pagoda_Type<"Args", "args"> {
  let summary = "The argument struct of a kernel (kernel_abi.h)";
}

def Pagoda_ItemType : Pagoda_Type<"Item", "item"> {
  let summary = "One work item of a plan (pagoda_work_item)";
}

def Pagoda_MergeType : Pagoda_Type<"Merge", "merge"> {
  let summary = "One merge of a plan (pagoda_merge_item)";
}

#endif // PAGODA_DIALECT_TYPES
