"""Keep local copies of things that change elsewhere as fresh as a polling budget allows."""
