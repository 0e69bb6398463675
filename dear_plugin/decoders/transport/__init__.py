"""Transport, the default decoder: rows keep their conditional ranks.

Its nine steps, each with its file and function:

1. Features are held, *counted* (with atoms) or *smooth*: `values.smooth_features`; the values of a
   counted one: `values.Values`.
2. Held features make cells: `held.Cells`; where they are numbers or have many levels, first by
   what they let expect of x_S: `held.Balance`.
3. x_S makes bins, and nodes that mix the ratios of two bins; a value is looked up at the nearest
   node: `values.axis_of`. A tree of the held features makes groups in which x_S may have another
   effect, where rows that it was not grown on say so: `held.Modifiers`.
4. A counted feature may move only if a test within cells rejects independence:
   `counted.linked`; of a smooth one, see 6.
5. A counted feature has a distribution for each cell and node: `counted.fit_ratios`; how far it
   varies along x_S: by a trend, `counted.trend`, and beside it, `counted.shrunk`.
6. A smooth feature has a location and a scale, on the columns of x_S and of the held features,
   `smooth.Columns`; those of x_S are taken where they fit significantly better:
   `smooth.LeastSquares`.
7. Encoding, `decoder.Estimate.encode`, takes the rank: `tables.Tables.ranks`; or the residual:
   `smooth.Lines.residual`.
8. Decoding, `decoder.Estimate.decode`, takes the value at that rank, of known numbers among known
   ones, by the maximal coupling for categories: `tables.Tables.move`; or adds the change of the
   location: `smooth.Lines.move`.
9. A resample repeats 4 to 6 with the weights of a bootstrap sample, `decoder.Estimate.drawn`, and
   takes another place among equal values, so that it is of one row.
"""
