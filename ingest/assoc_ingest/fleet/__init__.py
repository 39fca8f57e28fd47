"""What several machines keep together on a PostgreSQL server: pushed, searched and pulled."""
