"""Read files: whole models, and fragments as the specification prints them."""
