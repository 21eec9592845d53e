"""What every way in shares: who calls, how much they may, what is kept of it. No HTTP and no MCP framework here."""
