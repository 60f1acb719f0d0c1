"""What the API of this app reads and shows."""
