"""Sequence operations: attention, recurrent cells, connectionist temporal classification (CTC) and one-hot."""
