"""Depths of property testing: quick (`make check`), full (`make test`), and fresh cases each time (`make soak`)."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

_common = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "derandomize": True}
settings.register_profile("quick", max_examples=15, **_common)
settings.register_profile("full", max_examples=150, **_common)
settings.register_profile("soak", max_examples=1500, **(_common | {"derandomize": False}))
settings.load_profile("quick")
