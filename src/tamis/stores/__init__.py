"""The nouns: a store, its arrays, a writer of an array, netCDF's data model, and two stores compared."""
