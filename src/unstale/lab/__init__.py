"""An experiment on this machine: which replicas there are, what the theory says of them, what was measured."""
