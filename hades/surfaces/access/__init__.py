"""Access control and limits shared by REST and MCP. No HTTP or MCP framework is imported here."""
