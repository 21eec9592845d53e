"""What people and programs use: command line, REST, MCP, the explorer page, adapters of frameworks.
Thin on purpose.
"""
