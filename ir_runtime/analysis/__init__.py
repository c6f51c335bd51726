"""What is done to a graph between reading and running it."""
