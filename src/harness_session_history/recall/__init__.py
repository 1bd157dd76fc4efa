"""Tools by which an agent recalls its own conversation after a compaction or a handoff: search, read, hand off.

    tools = history_tools(session_id)           # or the calling session of the settings
    found = await tools.search(query="rollback decision")
    print(found["hits"], found.text)            # the data, and what a model is given

`prompt_section` tells a model when to use them; `adapters` has them in the tool formats of Anthropic and OpenAI,
`mcp_server` serves them. Everything here sees only the public `SessionHistory`.
"""

from .session_history_tool import session_history_tool
from .tools import HistoryTools, Tool, ToolResult, history_tools, prompt_section

__all__ = ["HistoryTools", "Tool", "ToolResult", "history_tools", "prompt_section", "session_history_tool"]
