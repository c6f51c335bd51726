"""Output formats of findings: SARIF, and GitHub annotations."""
