"""What to paste so that an MCP client starts the server: with absolute paths, since a client has a PATH and a working folder
of its own."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Sequence

from ..model.names import SERVER_NAME

#: The clients, with where each wants its configuration.
CLIENTS = {
    "claude-code": "Run this once in a shell.",
    "claude-desktop": "Merge this into claude_desktop_config.json (Settings, Developer, Edit Config).",
    "cursor": "Merge this into ~/.cursor/mcp.json.",
    "vscode": "Merge this into .vscode/mcp.json, or into the file that `MCP: Open User Configuration` opens.",
}


def configuration(client: str, settings: Sequence[str]) -> str:
    """The configuration for one of `CLIENTS`; `settings` are the options that stand before ``mcp``."""
    command, arguments = sys.executable, ["-m", "harness_session_history", *settings, "mcp"]
    if os.path.basename(sys.argv[0]) == SERVER_NAME and os.access(sys.argv[0], os.X_OK):
        command, arguments = os.path.abspath(sys.argv[0]), arguments[2:]
    if client == "claude-code":
        return shlex.join(["claude", "mcp", "add", "--scope", "user", SERVER_NAME, "--", command, *arguments])
    server: dict[str, object] = {"command": command, "args": arguments}
    if client == "vscode":
        return json.dumps({"servers": {SERVER_NAME: {"type": "stdio", **server}}}, indent=2, ensure_ascii=False)
    return json.dumps({"mcpServers": {SERVER_NAME: server}}, indent=2, ensure_ascii=False)
