"""Postgres: the tables, their named statements and migrations. Nothing else knows SQL."""
