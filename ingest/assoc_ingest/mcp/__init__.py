"""The index as tools of an agent: a server of the Model Context Protocol over standard streams."""
