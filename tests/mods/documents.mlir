// Several documents packed into one sequence: a token sees its own document.
// document[seq, position] is the document that a token belongs to; begin[seq,
// position] is the first position of that document, so that the keys before the
// first query's document are never visited.
func.func @mask_mod(%seq: i32, %head: i32, %q: i32, %kv: i32,
                    %document: tensor<?x?xi32> {pagoda.aux = "document"}) -> i1 {
  %s = arith.index_cast %seq : i32 to index
  %i = arith.index_cast %q : i32 to index
  %j = arith.index_cast %kv : i32 to index
  %own = tensor.extract %document[%s, %i] : tensor<?x?xi32>
  %other = tensor.extract %document[%s, %j] : tensor<?x?xi32>
  %same = arith.cmpi eq, %own, %other : i32
  return %same : i1
}

func.func @kv_range(%seq: i32, %q_lo: i32, %q_hi: i32,
                    %begin: tensor<?x?xi32> {pagoda.aux = "begin"})
    -> (i32, i32, i32, i32) {
  %s = arith.index_cast %seq : i32 to index
  %i = arith.index_cast %q_lo : i32 to index
  %lo = tensor.extract %begin[%s, %i] : tensor<?x?xi32>
  %most = arith.constant 2147483647 : i32
  // No key is known to be seen by all queries of a tile.
  return %lo, %lo, %lo, %most : i32, i32, i32, i32
}
