"""Transport, the default decoder: training rows in, tables of conditional ranks out."""
