"""Ask released wheels of OpenVINO which models they read: ``make releases`` writes the package's table from the answers."""
