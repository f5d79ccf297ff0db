"""One array rewritten from another: planned, encoded, written and proven.

- `plan`, `steps`: the plan of an array, and what happens to its values before the filters.
- `outcome`: what became of the values, added up from chunks.
- `new_chunk`, `encode`: chunks rounded, encoded, decoded again and compared.
- `write`: all chunks of an array; `segments` has those that other processes encode.
- `placed_chunks`: chunks in the journal beside their file, which `resumed_chunks` takes over from a killed run.
- `prove`, `witness`: the written array, read again by tamis and by other libraries.
- `streams`: chunks and zfp streams that are kept.
- `tolerance`, `packed_array`: the loosest tolerance for a bound, and floats as packed integers.
- `transfer`: everything in a store, written into another format.
"""
