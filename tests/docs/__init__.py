"""The documentation as a site: ``make docs`` writes its pages as plain Markdown, and Zensical builds them."""
