"""One technology per file, each keeping a contract of `unstale.ports`."""
