"""Ask released wheels of OpenVINO what they read: ``make releases`` writes the table of the package from the answers."""
