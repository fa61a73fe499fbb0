"""`python -m unstale`."""

from unstale.cli.main import main

if __name__ == "__main__":
    main()
