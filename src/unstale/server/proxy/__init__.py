"""A pull-through proxy: a shared cache by RFC 9111 in front of named origins, whose objects may join the fleet."""
