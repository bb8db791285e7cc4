"""The service: HTTP, the protocols of OpenAI and MCP, and a web page. Needs the extra `server`."""
