"""The replica as others read it: copies over HTTP, honest about how old they are. Reads the store, never polls."""
