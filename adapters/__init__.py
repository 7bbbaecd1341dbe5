"""The outside world, one module a neighbour. Nothing is imported here: each has a library of its own."""
