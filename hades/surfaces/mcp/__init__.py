"""The graph and the memory as tools of an agent, over the Model Context Protocol. The only room
that knows its SDK.
"""
