"""The conformance corpus: cases from the samples of all operations, with outputs that are true rather than measured."""
