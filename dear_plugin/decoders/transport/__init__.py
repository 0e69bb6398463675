"""Transport, the default decoder: rows keep their conditional ranks."""
