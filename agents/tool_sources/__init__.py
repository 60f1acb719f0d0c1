"""The tools that a tenant adds to the installation's own."""
