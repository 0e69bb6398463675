"""Transport, the default decoder: rows keep their conditional ranks.

Its nine steps, each with its file and function:

1. Features are held, *counted* (with atoms) or *smooth*: `values.smooth_features`; the values of a
   counted one: `values.Values`.
2. Held features make cells: `cells.Cells`; where they are numbers or have many levels, first by
   what they let expect of x_S: `balance.Balance`.
3. x_S makes bins, and nodes that mix the ratios of two bins; a value is looked up at the nearest
   node: `axes.axis_of`. A tree of the held features makes groups in which x_S may have another
   effect, where rows that it was not grown on say so: `modifiers.Modifiers`.
4. A counted feature may move only if a test within cells rejects independence:
   `links.linked`; of a smooth one, see 6.
5. A counted feature has a distribution for each cell and node: `ratios.fit_ratios`; how far it
   varies along x_S: by a trend, `counted.trend`, and beside it, `shrinkage.shrunk`.
6. A smooth feature has a location and a scale, on the columns of x_S and of the held features,
   `columns.Columns`; those of x_S are taken where they fit significantly better:
   `least_squares.LeastSquares.lines`.
7. Encoding, `estimate.Estimate.encode`, takes the rank: `tables.Tables.ranks`; or the residual:
   `lines.Lines.residual`.
8. Decoding, `estimate.Estimate.decode`, takes the value at that rank, of known numbers among known
   ones, by the maximal coupling for categories: `tables.Tables.move`; or adds the change of the
   location: `lines.Lines.move`.
9. A resample repeats 4 to 6 with the weights of a bootstrap sample, `estimate.Estimate.drawn`, and
   takes another place among equal values, so that it is of one person.
"""
