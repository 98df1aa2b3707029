// RUN: pagoda-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{schedule q_tile must be at least 1, got 0 (A1)}}
func.func private @f() attributes {s = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 0, kv_tile = 64, heads = 1>}

// -----

// expected-error @below {{schedule kv_tile must be at least 1, got 0 (A1)}}
func.func private @f() attributes {s = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 96, kv_tile = 0, heads = 1>}

// -----

// expected-error @below {{schedule heads must be at least 1, got 0 (A1)}}
func.func private @f() attributes {s = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 96, kv_tile = 64, heads = 0>}

// -----

// expected-error @below {{schedule block_rows must be at least 1, got 0 (A1)}}
func.func private @f() attributes {s = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 96, kv_tile = 64, heads = 1, block_rows = 0>}

// -----

// expected-error @below {{schedule block_vectors must be at least 1, got 0 (A1)}}
func.func private @f() attributes {s = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 96, kv_tile = 64, heads = 1, block_vectors = 0>}

// -----

// expected-error @below {{schedule stages must be at least 1, got 0 (A1)}}
func.func private @f() attributes {s = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 96, kv_tile = 64, heads = 1, stages = 0>}

// -----

// expected-error @below {{schedule warps must be at least 1, got 0 (A1)}}
func.func private @f() attributes {s = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 96, kv_tile = 64, heads = 1, warps = 0>}

// -----

// expected-error @below {{schedule prefetch must be at least 0, got -1 (A1)}}
func.func private @f() attributes {s = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 96, kv_tile = 64, heads = 1, prefetch = -1>}

// -----

// expected-error @below {{schedule kv_tile must be at least 1, got -64 (A1)}}
func.func private @f() attributes {s = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 96, kv_tile = -64, heads = 1>}
