"""What both clients share: bytes, arrays, decisions. Nothing in this package does I/O."""
