"""Sequences: attention, recurrent cells, connectionist temporal classification, one-hot."""
