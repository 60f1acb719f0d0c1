"""The HTTP face of agents and runs."""
