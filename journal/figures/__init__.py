"""Counting and adding up calls: live, and day by day in the background."""
