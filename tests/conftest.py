"""How properties are tested: the same examples in every run; others, and more, when asked to explore.

``HYPOTHESIS_PROFILE=explore pytest tests/ops/test_soundness.py`` looks further than a usual run does.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "usual", derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
)
settings.register_profile("explore", deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "usual"))
