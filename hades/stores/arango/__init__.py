"""ArangoDB behind the store port: python-arango, over AF_UNIX or TCP, with the queries of
`aql/`.
"""
