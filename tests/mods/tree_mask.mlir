// Speculative decoding: the last tokens of a sequence are a tree of drafts, and
// a draft sees the text before the tree and its own ancestors only.
// tree[i, j] is 1 if draft j is draft i or one of its ancestors; start[seq] is
// the position of the first draft of sequence seq.
func.func @mask_mod(%seq: i32, %head: i32, %q: i32, %kv: i32,
                    %tree: tensor<?x?xi32> {pagoda.aux = "tree"},
                    %start: tensor<?xi32> {pagoda.aux = "start"}) -> i1 {
  %s = arith.index_cast %seq : i32 to index
  %first = tensor.extract %start[%s] : tensor<?xi32>
  %text = arith.cmpi slt, %kv, %first : i32
  %row = arith.subi %q, %first : i32
  %column = arith.subi %kv, %first : i32
  %i = arith.index_cast %row : i32 to index
  %j = arith.index_cast %column : i32 to index
  %bit = tensor.extract %tree[%i, %j] : tensor<?x?xi32>
  %zero = arith.constant 0 : i32
  %ancestor = arith.cmpi ne, %bit, %zero : i32
  %seen = arith.select %text, %text, %ancestor : i1
  return %seen : i1
}
