"""Tables in files: their formats, and how to read their columns. Nothing here imports TensorFlow,
so errors about a file appear at once."""
