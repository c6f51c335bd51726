"""The documentation site: ``make docs`` writes its pages as plain Markdown, and Zensical builds them."""
