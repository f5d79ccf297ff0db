"""How far values are from their source: errors, statistics, requirements, and what suits the values.

- `difference`, `statistics`: errors of values, added up part by part.
- `requirement`, `value_bounds`, `measured`: what is required of values, and whether they meet it.
- `bins`, `distribution`, `fields`: counts, the Kolmogorov-Smirnov test, similarity, spectra and information of bits.
- `error_profile`, `field_profile`: what a report shows of errors.
- `reasonable`: whether an error is small for the values.
"""
