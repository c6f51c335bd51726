"""What a model is held together by: its ends, loops, and variables that outlive a run."""
