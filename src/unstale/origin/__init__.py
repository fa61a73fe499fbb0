"""A web site that changes by known laws and tells the truth about it: for demo, tests, benches and soaks."""
