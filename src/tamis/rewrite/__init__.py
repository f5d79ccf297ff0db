"""One array rewritten from another: planned, encoded, written and proven.

- `plan`, `steps`: the plan of an array, and what happens to its values before the filters.
- `tolerance`, `packed_array`, `nearest`: the loosest tolerance for a bound, floats as packed integers, and filters for
  a format that lacks those of the source.
- `surveys`, `damage`, `coarse_bounds`: what the values show: measures, chunks that cannot be decoded, and bounds that
  are too large.
- `create`: the place of an array in a new store, and what creates the array there.
- `write`, `growth`: all chunks of an array, unless it would become larger; `segments` has those that other processes
  encode.
- `new_chunk`, `encode`, `values`: chunks rounded, padded, encoded, decoded again and compared.
- `streams`: chunks and zfp streams that are kept.
- `outcome`: what became of the values, added up from chunks.
- `placed_chunks`: chunks in the journal beside their file, which `resumed_chunks` takes over from a killed run.
- `prove`, `witness`: the written array, read again by tamis and by other libraries.
- `transfer`, `plain_target`: everything in a store, written into another format, with filters or without.
- `new_packing`: the codes of values that come from no store.
"""
