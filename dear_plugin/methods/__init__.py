"""Methods: they take a model and a frame and return recourses."""
