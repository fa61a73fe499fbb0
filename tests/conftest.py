"""Two depths of property testing: quick while working (`make check`), full before landing (`make test`)."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

_common = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "derandomize": True}
settings.register_profile("quick", max_examples=15, **_common)
settings.register_profile("full", max_examples=150, **_common)
settings.load_profile("quick")
