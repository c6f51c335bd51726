"""The museum: differences of released OpenVINO wheels from the specification, with a bundle for each."""
