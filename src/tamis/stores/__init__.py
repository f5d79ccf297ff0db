"""Files and folders of arrays, whatever their format: protocols, and what several formats share.

`protocols` defines a store, which is a file or folder of arrays; a stored array; and an array writer, which takes
chunks. `tamis.rewrite` knows no more than these three of any format.

- `facts`: what a format knows about an array, as records, and what follows from them for all formats.
- `arrays`: what several formats share.
- `source`: a format without chunks and filters as plain data, from which a store follows.
- `data_model`, `header`: netCDF's data model, and the header for CDL.
- `comparison`: two stores compared.
- `translation`: what becomes of each kind of thing in another format.
- `joined`, `extended`: several files as one store, and arrays up to the ends of their dimensions.
- `other_files`: what a target leads to.
- `first_bytes`, `readers`: what a file is, and who can read it.
"""
