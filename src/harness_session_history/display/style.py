"""The style sheet of the notebook cards.

Every rule is scoped by the class ``hsh``. Colours are variables with one set for light and one for dark: the
reader's system decides, unless the notebook (Jupyter, VS Code) says which theme it shows. No colour carries a
meaning alone; without any style sheet the markup still reads in order.
"""

from __future__ import annotations

_LIGHT = (
    "--hsh-fg:var(--jp-content-font-color0,var(--vscode-editor-foreground,#1f2328));"
    "--hsh-bg:var(--jp-layout-color0,var(--vscode-editor-background,#fff));"
    "--hsh-muted:#57606a;--hsh-line:#d5dae0;--hsh-soft:rgba(110,125,145,.09);"
    "--hsh-good:#1a7f37;--hsh-good-bg:#e3f6e8;--hsh-warn:#7d4e00;--hsh-warn-bg:#fff4d6;"
    "--hsh-mark:#fff0a0;--hsh-mark-fg:#1f2328;--hsh-user:#0a5ec2;--hsh-assistant:#7a3ec8;"
)
_DARK = (
    "--hsh-fg:var(--jp-content-font-color0,var(--vscode-editor-foreground,#e6edf3));"
    "--hsh-bg:var(--jp-layout-color0,var(--vscode-editor-background,#0f1319));"
    "--hsh-muted:#a0aab4;--hsh-line:#39414b;--hsh-soft:rgba(140,160,185,.11);"
    "--hsh-good:#56d06d;--hsh-good-bg:#12291a;--hsh-warn:#e6b450;--hsh-warn-bg:#2c230f;"
    "--hsh-mark:#6a5200;--hsh-mark-fg:#fff;--hsh-user:#6cb0ff;--hsh-assistant:#c29bff;"
)

_RULES = """
.hsh{color:var(--hsh-fg);background:var(--hsh-bg);border:1px solid var(--hsh-line);border-radius:10px;
max-width:56rem;margin:4px 0;overflow:hidden;text-align:left;
font:14px/1.5 var(--jp-content-font-family,var(--vscode-font-family,system-ui,sans-serif))}
.hsh p,.hsh ol,.hsh ul,.hsh div{margin:0;padding:0;list-style:none}
.hsh.hsh.hsh ol,.hsh.hsh.hsh ul{padding:0}
.hsh p,.hsh li,.hsh td,.hsh th,.hsh summary{font-size:inherit;line-height:inherit;overflow-wrap:anywhere}
.hsh .hsh-head{padding:14px 18px 12px}
.hsh .hsh-title{font-size:18px;line-height:1.35}
.hsh .hsh-title strong{font-weight:600;font-size:inherit}
.hsh .hsh-small{color:var(--hsh-muted);font-size:12.5px}
.hsh .hsh-fresh{margin-top:8px;font-size:12.5px;border-radius:6px;padding:4px 10px;background:var(--hsh-soft)}
.hsh .hsh-fresh.hsh-good{color:var(--hsh-good);background:var(--hsh-good-bg)}
.hsh .hsh-fresh.hsh-warn{color:var(--hsh-warn);background:var(--hsh-warn-bg)}
.hsh .hsh-card{display:block;padding:12px 18px 13px;border-top:1px solid var(--hsh-line)}
.hsh .hsh-meta{font-size:12.5px;color:var(--hsh-muted);overflow-wrap:anywhere}
.hsh .hsh-name{color:var(--hsh-fg);font-weight:600;font-size:13.5px}
.hsh .hsh-role-user{color:var(--hsh-user)}
.hsh .hsh-role-assistant{color:var(--hsh-assistant)}
.hsh .hsh-badge{display:inline-block;white-space:nowrap;font-style:normal;margin-left:3px;font-weight:400;color:var(--hsh-muted);border:1px solid currentColor;border-radius:9px;padding:0 7px;font-size:11px;line-height:15px}
.hsh .hsh-text{margin:6px 0 8px;color:inherit;background:none;font-size:inherit;padding:1px 0 1px 12px;border-left:3px solid var(--hsh-line);white-space:pre-wrap;
overflow:hidden;overflow-wrap:anywhere}
.hsh .hsh-text:last-child{margin-bottom:0}
.hsh .hsh-text-user{border-color:var(--hsh-user)}
.hsh .hsh-text-assistant{border-color:var(--hsh-assistant)}
.hsh mark{background:var(--hsh-mark);color:var(--hsh-mark-fg);border-radius:3px;padding:0 2px;font-weight:600;
text-decoration:underline;text-decoration-thickness:1px;text-underline-offset:3px}
.hsh .hsh-copy{background:var(--hsh-soft);color:inherit;border-radius:5px;padding:1px 6px;white-space:pre-wrap;
font:12px/1.6 var(--jp-code-font-family,var(--vscode-editor-font-family,ui-monospace,monospace));
overflow-wrap:anywhere;-webkit-user-select:all;user-select:all}
.hsh details{display:inline}
.hsh details[open]{display:block;padding-top:4px}
.hsh summary{display:inline;cursor:pointer;text-decoration:underline dotted;text-underline-offset:3px}
.hsh .hsh-target{background:var(--hsh-soft);box-shadow:inset 4px 0 0 var(--hsh-warn)}
.hsh .hsh-target .hsh-flag{color:var(--hsh-warn);font-weight:600}
.hsh .hsh-foot{padding:9px 18px 11px;border-top:1px solid var(--hsh-line)}
.hsh .hsh-foot p{font-size:11.5px;color:var(--hsh-muted)}
.hsh .hsh-time{display:block;max-width:100%;height:auto;color:var(--hsh-user)}
.hsh .hsh-axis,.hsh .hsh-tick{color:var(--hsh-muted);fill:currentColor}
"""


def style_sheet() -> str:
    """The CSS text, without any remote reference."""
    rules = "".join(_RULES.split("\n"))
    return (
        f".hsh{{{_LIGHT}}}"
        f"@media (prefers-color-scheme:dark){{.hsh{{{_DARK}}}}}"
        f'[data-jp-theme-light="true"] .hsh,body.vscode-light .hsh,body.vscode-high-contrast-light .hsh{{{_LIGHT}}}'
        f'[data-jp-theme-light="false"] .hsh,body.vscode-dark .hsh,'
        f"body.vscode-high-contrast:not(.vscode-high-contrast-light) .hsh{{{_DARK}}}"
        f"{rules}"
    )
