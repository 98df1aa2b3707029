// A learned bias for each head and distance, as in T5: bias[head, distance].
func.func @score_mod(%score: f32, %seq: i32, %head: i32, %q: i32, %kv: i32,
                     %bias: tensor<?x?xf32> {pagoda.aux = "bias"}) -> f32 {
  %distance = arith.subi %q, %kv : i32
  %h = arith.index_cast %head : i32 to index
  %d = arith.index_cast %distance : i32 to index
  %b = tensor.extract %bias[%h, %d] : tensor<?x?xf32>
  %biased = arith.addf %score, %b : f32
  return %biased : f32
}
