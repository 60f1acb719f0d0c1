"""What changes agents and runs."""
