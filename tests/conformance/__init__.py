"""The conformance corpus: cases from the samples of all operations, with computed rather than recorded expected outputs."""
