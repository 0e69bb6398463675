"""Methods: a model and a frame in, recourses out."""
