"""From a graph to arrays: compiling a plan, running it, watching it run."""
