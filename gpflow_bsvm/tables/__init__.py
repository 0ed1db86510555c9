"""Tables in files: how they are written, and what becomes of their columns. Nothing here needs
TensorFlow, so that an error about a file is instant."""
