"""What HADES can do, each capability declared once; the command line, REST, MCP and Prefect tasks
are made from it.
"""
