"""Limits that cannot be passed, however many workers call at once.

Two stores, for two kinds of promise. Rates and concurrency are worth nothing a minute later:
they live in Redis, where one script checks and takes all of them at once. Money is owed: it
lives in PostgreSQL, in the transaction that locks the period's row, and survives everything.
"""
