"""The only writer: one database, one lock, one transaction for each batch."""
