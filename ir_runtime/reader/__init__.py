"""From files to graphs: whole models, and fragments as the specification prints them."""
