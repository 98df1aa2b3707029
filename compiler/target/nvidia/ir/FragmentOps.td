//===- FragmentOps.td - What a thread block does with tiles -*- tablegen -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The level between tiled IR and NVVM: tiles have become registers and shared
// memory, but one op is still one step of a whole thread block. Everything
// else at this level (addresses, loops, branches) is arith, scf and llvm.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TARGET_NVIDIA_IR_FRAGMENTOPS
#define PAGODA_COMPILER_TARGET_NVIDIA_IR_FRAGMENTOPS

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Nv_Dialect : Dialect {
  let name = "pagoda_nv";
  let cppNamespace = "::pagoda::nv";
  let summary = "Fragments, shared tiles and pipelines of an NVIDIA thread block";
  let description = [{
    A *fragment* is a tile in registers, spread over the threads of a block; a
    *shared tile* is one in shared memory. Each op is one step that all threads
    of the block take together. `pagoda-nvidia-lower-tiles` writes them,
    `pagoda-nvidia-lower-fragments` turns them into NVVM.

    In every region of an op the rows of a fragment are numbered from 0 on
    through all warps of the block.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

def Nv_Form : I32EnumAttr<"Form", "which registers of which lane hold a tile", [
      I32EnumAttrCase<"a", 0>,
      I32EnumAttrCase<"acc", 1>,
      I32EnumAttrCase<"row", 2>
    ]> {
  let cppNamespace = "::pagoda::nv";
  let genSpecializedAttr = 0;
}

class Nv_Type<string name, string typeMnemonic>
    : TypeDef<Nv_Dialect, name> {
  let mnemonic = typeMnemonic;
  let genVerifyDecl = 1;
  let hasCustomAssemblyFormat = 1;
}

def Nv_FragmentType : Nv_Type<"Fragment", "fragment"> {
  let summary = "A tile in registers: rows x columns x element, and its form";
  let description = [{
    A warp owns 16 rows. `Fragment.h` maps each form's registers to rows and
    columns.

    - `a`: operand A of an m16n8k16 matrix product, f16 or bf16.
    - `acc`: its accumulator, f32.
    - `row`: one value per row, f32 or i32, the same in the four lanes that
      share the row.

    Example: `!pagoda_nv.fragment<64x128xf32, acc>`
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$cols, "::mlir::Type":$elt,
                        EnumParameter<Nv_Form>:$form);
}

def Nv_SharedType : Nv_Type<"Shared", "shared"> {
  let summary = "A tile of 16-bit elements in shared memory";
  let description = [{
    Columns are filled up to a multiple of 16 with zeros. Chunks of 16 bytes are
    permuted within a row so that matrix loads meet no bank conflict
    (`SharedTile.h`).

    Example: `!pagoda_nv.shared<64x128xf16>`
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$cols, "::mlir::Type":$elt);
  let extraClassDeclaration = [{
    int64_t getPaddedCols() const { return (getCols() + 15) / 16 * 16; }
    int64_t getBytes() const { return getRows() * getPaddedCols() * 2; }
  }];
}

def Nv_PipelineType : Nv_Type<"Pipeline", "pipeline"> {
  let summary = "A ring of slots in shared memory, each of the same tiles";
  let description = [{
    Copies fill slots ahead of the products that read them. A slot goes through
    four steps, each an op:

    1. `acquire`: every warp has released what the slot held;
    2. `copy_rows` into its tiles, which `commit` closes as one group;
    3. `wait`: the group has landed, and every thread may read it;
    4. `release`: this warp reads it no more.

    Example: `!pagoda_nv.pipeline<2 of 64x128xf16, 64x128xf16>`
  }];
  let parameters = (ins "int64_t":$stages,
                        ArrayRefParameter<"::pagoda::nv::SharedType">:$tiles);
  let extraClassDeclaration = [{
    int64_t getSlotBytes() const {
      int64_t bytes = 0;
      for (SharedType tile : getTiles())
        bytes += tile.getBytes();
      return bytes;
    }
    int64_t getBytes() const { return getStages() * getSlotBytes(); }
  }];
}

class Nv_FragmentOf<string form> : Type<
    And<[CPred<"::llvm::isa<::pagoda::nv::FragmentType>($_self)">,
         CPred<"::llvm::cast<::pagoda::nv::FragmentType>($_self).getForm() == "
               "::pagoda::nv::Form::" # form>]>,
    "fragment of form " # form, "::pagoda::nv::FragmentType">;
def Nv_OperandFragment : Nv_FragmentOf<"a">;
def Nv_AccFragment : Nv_FragmentOf<"acc">;
def Nv_RowFragment : Nv_FragmentOf<"row">;

class Nv_Op<string opMnemonic, list<Trait> traits = []>
    : Op<Nv_Dialect, opMnemonic, traits>;

def Nv_YieldOp : Nv_Op<"yield", [Pure, Terminator, ReturnLike]> {
  let summary = "Ends a region of a pagoda_nv op and hands its values out";
  let description = "Example: `pagoda_nv.yield %pointer : !llvm.ptr<1>`";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
  let builders = [OpBuilder<(ins), [{ /* yields nothing */ }]>];
}

//===----------------------------------------------------------------------===//
// Shared memory and pipelines
//===----------------------------------------------------------------------===//

def Nv_PipelineOp : Nv_Op<"pipeline", [Pure]> {
  let summary = "The slots that lie in shared memory from a byte on";
  let description = [{
    Example: `%kv = pagoda_nv.pipeline at 16384 : !pagoda_nv.pipeline<2 of 64x128xf16, 64x128xf16>`
  }];
  let arguments = (ins I64Attr:$offset);
  let results = (outs Nv_PipelineType:$pipeline);
  let assemblyFormat = "`at` $offset attr-dict `:` type($pipeline)";
}

def Nv_SlotOp : Nv_Op<"slot", [Pure]> {
  let summary = "The tiles of one slot of a pipeline";
  let description = [{
    Example: `%k, %v = pagoda_nv.slot %kv[%i] : !pagoda_nv.pipeline<2 of 64x128xf16, 64x128xf16>`
  }];
  let arguments = (ins Nv_PipelineType:$pipeline, I32:$index);
  let results = (outs Variadic<Nv_SharedType>:$tiles);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

class Nv_PipelineStep<string opMnemonic> : Nv_Op<opMnemonic> {
  let arguments = (ins Nv_PipelineType:$pipeline);
  let assemblyFormat = "$pipeline attr-dict `:` type($pipeline)";
}

def Nv_AcquireOp : Nv_PipelineStep<"acquire"> {
  let summary = "Every warp has released what the next slot held";
  let description = [{
    Where there are several slots it follows the `wait` of the same round, whose
    barrier says it already; with one slot it is a barrier of its own.

    Example: `pagoda_nv.acquire %kv : !pagoda_nv.pipeline<2 of 64x128xf16>`
  }];
}

def Nv_CommitOp : Nv_PipelineStep<"commit"> {
  let summary = "Close this thread's copies since the last commit as one group";
  let description = [{
    A group may be empty: groups are counted, so each round closes one.

    Example: `pagoda_nv.commit %kv : !pagoda_nv.pipeline<2 of 64x128xf16>`
  }];
}

def Nv_WaitOp : Nv_Op<"wait"> {
  let summary = "All but the youngest groups of copies have landed, for everyone";
  let description = [{
    At most `pending` groups of each thread are still under way, whichever
    pipelines they belong to, and all threads have come here.

    Example: `pagoda_nv.wait %kv pending 1 : !pagoda_nv.pipeline<3 of 64x128xf16>`
  }];
  let arguments = (ins Nv_PipelineType:$pipeline, I64Attr:$pending);
  let assemblyFormat = "$pipeline `pending` $pending attr-dict `:` type($pipeline)";
}

def Nv_ReleaseOp : Nv_PipelineStep<"release"> {
  let summary = "This warp reads the slot that it waited for no more";
  let description = [{
    No instruction here: the barrier of the next `wait` or `acquire` hands it on.

    Example: `pagoda_nv.release %kv : !pagoda_nv.pipeline<2 of 64x128xf16>`
  }];
}

def Nv_CopyRowsOp : Nv_Op<"copy_rows", [SingleBlock]> {
  let summary = "Rows of global memory to a shared tile, asynchronously";
  let description = [{
    All threads copy, 16 bytes at a time. The region says where a row of the
    tile begins: a row of a page through the block table, say. Rows from
    `limit` on do not exist: they become zeros, and the region names for them
    a row that may be read.

    Example:

    ```mlir
    pagoda_nv.copy_rows %k below %limit {
    ^bb0(%row: i32):
      ...
      pagoda_nv.yield %pointer : !llvm.ptr<1>
    } : !pagoda_nv.shared<64x128xf16>
    ```
  }];
  let arguments = (ins Nv_SharedType:$target, I32:$limit);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$target `below` $limit $body attr-dict `:` type($target)";
  let hasRegionVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

def Nv_LoadOp : Nv_Op<"load"> {
  let summary = "A shared tile as operand A, each warp its rows";
  let description = [{
    Example: `%q = pagoda_nv.load %tile : !pagoda_nv.shared<64x64xf16> -> !pagoda_nv.fragment<64x64xf16, a>`
  }];
  let arguments = (ins Nv_SharedType:$source);
  let results = (outs Nv_OperandFragment:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Nv_MmaOp : Nv_Op<"mma", [AllTypesMatch<["c", "result"]>]> {
  let summary = "C + A B on tensor cores";
  let description = [{
    A is a fragment, or a shared tile whose rows are read again for each
    product. B is a shared tile of k rows and n columns; with `transposed`, of n
    rows and k columns.

    Example: `%s = pagoda_nv.mma %q, %k transposed, %zero : !pagoda_nv.fragment<64x64xf16, a>,
    !pagoda_nv.shared<32x64xf16>, !pagoda_nv.fragment<64x32xf32, acc>`
  }];
  let arguments = (ins AnyTypeOf<[Nv_OperandFragment, Nv_SharedType]>:$a,
                       Nv_SharedType:$b, UnitAttr:$transposed, Nv_AccFragment:$c);
  let results = (outs Nv_AccFragment:$result);
  let assemblyFormat = [{
    $a `,` $b (`transposed` $transposed^)? `,` $c attr-dict `:` type($a) `,` type($b) `,` type($c)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Rows of A, columns of C, and what the sums run over.
    int64_t getM();
    int64_t getN();
    int64_t getK();
  }];
}

def Nv_ConvertOp : Nv_Op<"convert", [Pure]> {
  let summary = "An accumulator, rounded, as operand A";
  let description = [{
    No thread gives anything to another: both forms give a lane the same rows and
    columns.

    Example: `%a = pagoda_nv.convert %p : !pagoda_nv.fragment<64x32xf32, acc> -> !pagoda_nv.fragment<64x32xf16, a>`
  }];
  let arguments = (ins Nv_AccFragment:$source);
  let results = (outs Nv_OperandFragment:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Rows and elements
//===----------------------------------------------------------------------===//

def Nv_SplatOp : Nv_Op<"splat", [Pure]> {
  let summary = "The same value everywhere";
  let description = "Example: `%o = pagoda_nv.splat %zero : !pagoda_nv.fragment<64x128xf32, acc>`";
  let arguments = (ins F32:$value);
  let results = (outs AnyTypeOf<[Nv_AccFragment, Nv_RowFragment]>:$result);
  let assemblyFormat = "$value attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Nv_RowReduction : I32EnumAttr<"RowReduction", "what joins two values", [
      I32EnumAttrCase<"max", 0>,
      I32EnumAttrCase<"add", 1>
    ]> {
  let cppNamespace = "::pagoda::nv";
  let genSpecializedAttr = 0;
}
def Nv_RowReductionAttr : EnumAttr<Nv_Dialect, Nv_RowReduction, "reduction">;

def Nv_RowReduceOp : Nv_Op<"row_reduce", [Pure]> {
  let summary = "Largest value, or sum, of each row";
  let description = [{
    Of the columns that the tile has. A maximum passes over NaN.

    Example: `%m = pagoda_nv.row_reduce max %s : !pagoda_nv.fragment<64x32xf32, acc> -> !pagoda_nv.fragment<64x1xf32, row>`
  }];
  let arguments = (ins Nv_RowReductionAttr:$reduction, Nv_AccFragment:$source);
  let results = (outs Nv_RowFragment:$result);
  let assemblyFormat = "$reduction $source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Nv_Exp2Op : Nv_Op<"exp2", [Pure, AllTypesMatch<["source", "result"]>]> {
  let summary = "2^((x - r) c) with the row's r";
  let description = [{
    The difference first: x may be so large that x c - r c, rounded, is nowhere
    near. A reference of -inf counts as 0, so that a row of -inf gives 0.

    Example: `%p = pagoda_nv.exp2 %s minus %m times %c : !pagoda_nv.fragment<64x32xf32, acc>, !pagoda_nv.fragment<64x1xf32, row>`
  }];
  let arguments = (ins AnyTypeOf<[Nv_AccFragment, Nv_RowFragment]>:$source,
                       Nv_RowFragment:$reference, F32:$factor);
  let results = (outs AnyTypeOf<[Nv_AccFragment, Nv_RowFragment]>:$result);
  let assemblyFormat = [{
    $source `minus` $reference `times` $factor attr-dict `:` type($source) `,` type($reference)
  }];
  let hasVerifier = 1;
}

def Nv_ScaleOp : Nv_Op<"scale", [Pure, AllTypesMatch<["source", "result"]>]> {
  let summary = "Each row times its factor";
  let description = [{
    Example: `%o1 = pagoda_nv.scale %o, %alpha : !pagoda_nv.fragment<64x128xf32, acc>, !pagoda_nv.fragment<64x1xf32, row>`
  }];
  let arguments = (ins Nv_AccFragment:$source, Nv_RowFragment:$factors);
  let results = (outs Nv_AccFragment:$result);
  let assemblyFormat = "$source `,` $factors attr-dict `:` type($source) `,` type($factors)";
  let hasVerifier = 1;
}

def Nv_PerRowOp : Nv_Op<"per_row", [SingleBlock, RecursiveMemoryEffects]> {
  let summary = "Values of each row from its number and its other values";
  let description = [{
    The region gets the row's number and one value per fragment; all threads that
    hold the row evaluate it.

    Example:

    ```mlir
    %l1 = pagoda_nv.per_row(%l, %alpha, %sum) {
    ^bb0(%row: i32, %x: f32, %y: f32, %z: f32):
      %sum = math.fma %x, %y, %z : f32
      pagoda_nv.yield %sum : f32
    } : (!row, !row, !row) -> !row
    ```
  }];
  let arguments = (ins Variadic<Nv_RowFragment>:$sources);
  let results = (outs Variadic<Nv_RowFragment>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`(` $sources `)` $body attr-dict `:` functional-type($sources, $results)";
  let hasRegionVerifier = 1;
}

def Nv_MapOp : Nv_Op<"map",
    [SingleBlock, RecursiveMemoryEffects, AllTypesMatch<["source", "result"]>]> {
  let summary = "Each element from itself, its column's number and its row's values";
  let description = [{
    Column n of the tile has the number `first` + n. Score and mask regions of
    the tiled level end up here.

    Example:

    ```mlir
    %t = pagoda_nv.map %s, %pos from %j {
    ^bb0(%score: f32, %q_pos: i32, %kv_pos: i32):
      %sees = arith.cmpi sle, %kv_pos, %q_pos : i32
      %u = arith.select %sees, %score, %none : f32
      pagoda_nv.yield %u : f32
    } : !pagoda_nv.fragment<64x32xf32, acc>, !pagoda_nv.fragment<64x1xi32, row>
    ```
  }];
  let arguments = (ins Nv_AccFragment:$source, Variadic<Nv_RowFragment>:$rows, I32:$first);
  let results = (outs Nv_AccFragment:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $source (`,` $rows^)? `from` $first $body attr-dict `:` type($source) (`,` type($rows)^)?
  }];
  let hasRegionVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

def Nv_StoreOp : Nv_Op<"store", [SingleBlock]> {
  let summary = "Rows of an accumulator, rounded, to global memory";
  let description = [{
    Each lane stores its columns, two at a time where rows have an even number.
    The region says where a row begins; rows from `limit` on are not stored.

    Example:

    ```mlir
    pagoda_nv.store %o as f16 below %rows {
    ^bb0(%row: i32):
      ...
      pagoda_nv.yield %pointer : !llvm.ptr<1>
    } : !pagoda_nv.fragment<64x128xf32, acc>
    ```
  }];
  let arguments = (ins Nv_AccFragment:$source, TypeAttr:$elt, I32:$limit);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$source `as` $elt `below` $limit $body attr-dict `:` type($source)";
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Nv_ForRowsOp : Nv_Op<"for_rows", [SingleBlock]> {
  let summary = "Do something once per row below a limit";
  let description = [{
    One thread of those that hold the row runs the region, with the row's number
    and one value per fragment.

    Example:

    ```mlir
    pagoda_nv.for_rows(%m, %l) below %rows {
    ^bb0(%row: i32, %x: f32, %y: f32):
      ...
      pagoda_nv.yield
    } : !pagoda_nv.fragment<64x1xf32, row>, !pagoda_nv.fragment<64x1xf32, row>
    ```
  }];
  let arguments = (ins Variadic<Nv_RowFragment>:$sources, I32:$limit);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`(` $sources `)` `below` $limit $body attr-dict `:` type($sources)";
  let hasRegionVerifier = 1;
}

#endif // PAGODA_COMPILER_TARGET_NVIDIA_IR_FRAGMENTOPS
