"""The one door to the data: sources of rows, and the two loops over them."""
