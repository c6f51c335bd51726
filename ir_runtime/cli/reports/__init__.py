"""The forms in which findings are given: text, JSON, SARIF, and annotations of GitHub's."""
