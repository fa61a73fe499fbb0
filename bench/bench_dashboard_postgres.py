"""What a person does in the dashboard, with 100,000 sources in PostgreSQL: `bench_dashboard` on a server of its own."""

from __future__ import annotations

import sys

from bench_dashboard import main

if __name__ == "__main__":
    sys.argv.append("--postgres")
    main()
