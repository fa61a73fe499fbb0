"""What can be asked of a fleet and done to it, computed once: command line, API, dashboard and metrics only render it.

Rules of this room:
1. A number has one place where it is computed; whoever shows it takes it from a record made there.
2. It knows stores by their contracts (`unstale.ports`) and no technology, and it knows no settings file: what those say
   comes in as `ServiceSettings`.
3. Times are seconds since the epoch, rates per second; NaN and infinities become null where JSON is written.
"""

from unstale.service.fleet_service import FleetService
from unstale.service.service_settings import ServiceSettings

__all__ = ["FleetService", "ServiceSettings"]
