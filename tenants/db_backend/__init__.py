"""Django's PostgreSQL backend, which tells the database in every transaction whose code runs."""
