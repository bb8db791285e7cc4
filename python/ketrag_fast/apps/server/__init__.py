"""The service: questions over HTTP, the protocols of OpenAI and MCP, and a page. Needs the extra `server`."""
