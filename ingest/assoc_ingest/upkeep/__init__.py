"""Checking the database, repairing it, bringing files back, and removing what is to go."""
