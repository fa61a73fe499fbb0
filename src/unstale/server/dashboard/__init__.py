"""The dashboard: how a store stands, in a browser. Its files come from here alone, and nothing of a source can run."""

from __future__ import annotations

from unstale.server.dashboard.door import Door
from unstale.server.dashboard.views import views

__all__ = ["Door", "views"]
