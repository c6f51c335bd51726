"""The museum: what released wheels of OpenVINO compute otherwise than the pages say, a bundle for each difference."""
