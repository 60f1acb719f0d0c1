"""Runs' events for who listens while they happen: published, fanned out, sent as they come."""
