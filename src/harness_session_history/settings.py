"""Where transcripts and index are, and whose conversation is asking: arguments first, then the environment.

Everything is read when `Settings.resolve` is called and nothing is kept in the module (contract: settings).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

import msgspec

from .errors import InvalidRequest, log_warning
from .model.names import INDEX_NAME, MAX_ID_CHARS, plain_id
from .model.sources import MAX_LINE, Root

PathArgument = str | os.PathLike[str]
"""What names a file or a folder: ``~`` is expanded, a relative one is meant from the working folder."""

#: Seconds of catching up in the shell, the MCP server and the tools, and the most that may be set.
CATCH_UP_SECONDS, MAX_CATCH_UP = 0.1, 25.0
#: The label of roots that were found by a project's settings, or in the folder where one works.
PROJECT = "project"
#: The most megabytes of a line that may be set.
MOST_MAX_LINE = 512

VARIABLES = (
    "SESSION_HISTORY_ROOTS", "SESSION_HISTORY_INDEX", "SESSION_HISTORY_CURRENT", "SESSION_HISTORY_REGISTRY",
    "SESSION_HISTORY_MAINTENANCE", "SESSION_HISTORY_CATCH_UP", "SESSION_HISTORY_MAX_LINE", "SESSION_HISTORY_REDACT",
    "SESSION_HISTORY_PROJECT_SETTINGS", "PI_CODING_AGENT_SESSION_DIR", "PI_CODING_AGENT_DIR", "PI_SESSION_ID",
    "HOME", "USERPROFILE", "XDG_CACHE_HOME",
)  # fmt: skip
"""The environment variables that settings are made from."""


class Settings(msgspec.Struct, frozen=True):
    """The settings of one `SessionHistory`."""

    roots: tuple[Root, ...]
    index: str
    """Path of the index file."""
    current_session: str | None
    """Id of the session that is asking; None if that cannot be told. It is never guessed."""
    registry: str | None
    """Path of the registry file, if a host keeps one."""
    maintenance: bool
    """Whether a call that found work may have it done in the background."""
    catch_up: float | None = None
    """Seconds for which a call first reads what changed, if that is little; None: as its caller is used to (0 in Python,
    `CATCH_UP_SECONDS` in the shell, the MCP server and the tools)."""
    max_line: int = MAX_LINE
    """Bytes of the longest line of a transcript that is read."""
    redact: bool = False
    """Whether secrets are masked in answers."""

    @classmethod
    def resolve(
        cls,
        *,
        roots: PathArgument | list[PathArgument] | tuple[PathArgument, ...] | None = None,
        index: PathArgument | None = None,
        current_session_id: str | None = None,
        registry: PathArgument | None = None,
        maintenance: bool = True,
        catch_up: float | None = None,
        redact: bool | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> Settings:
        """The settings for these arguments; what is None comes from `environ`.

        Raises `InvalidRequest`, which names the argument or variable, for a wrong type or value.
        """
        if not isinstance(maintenance, bool):
            raise InvalidRequest(f"maintenance must be True or False, not {type(maintenance).__name__}")
        if roots is not None:
            chosen = _argument_roots(roots, environ)
        else:
            chosen = _environment_roots(environ) or _pi_roots(environ)
        named_index = _path("index", index, environ) or _variable("SESSION_HISTORY_INDEX", environ)
        return cls(
            roots=chosen,
            index=named_index or _default_index(chosen),
            current_session=_current(current_session_id, environ),
            registry=_path("registry", registry, environ) or _variable("SESSION_HISTORY_REGISTRY", environ),
            maintenance=_switch("SESSION_HISTORY_MAINTENANCE", environ, default=True) and maintenance,
            catch_up=_catch_up(catch_up, environ),
            max_line=_max_line(environ),
            redact=_redact(redact, environ),
        )


def _argument_roots(roots: object, environ: Mapping[str, str]) -> tuple[Root, ...]:
    given = roots if isinstance(roots, (list, tuple)) else [roots]
    if not given:
        raise InvalidRequest("roots must name at least one folder", hint="Leave roots out for Pi's own places.")
    paths = (_path("roots", path, environ) for path in given)
    return _unique(Root(path, True, True) for path in paths if path is not None)


def _environment_roots(environ: Mapping[str, str]) -> tuple[Root, ...]:
    listed = environ.get("SESSION_HISTORY_ROOTS", "").split(os.pathsep)
    paths = (_absolute("SESSION_HISTORY_ROOTS", path, environ) for path in listed if path.strip())
    return _unique(Root(path, True, True) for path in paths)


def _pi_roots(environ: Mapping[str, str]) -> tuple[Root, ...]:
    """Pi's places, all of them: sessions stay where they were written when the setting is changed later."""
    found: list[Root] = []
    session_folder = _variable("PI_CODING_AGENT_SESSION_DIR", environ)
    if session_folder is not None:
        found.append(Root(session_folder, True, True))
    named_agent = _variable("PI_CODING_AGENT_DIR", environ)
    agent = named_agent or os.path.join(_home(environ), ".pi", "agent")
    own, of_project = os.path.join(agent, "settings.json"), os.path.join(".pi", "settings.json")
    # What a cloned repository brings along is not the user's past.
    asked = _switch("SESSION_HISTORY_PROJECT_SETTINGS", environ, default=False)
    for settings in (of_project, own) if asked else (own,):
        configured = _session_folder_in(settings)
        if configured is not None:
            here = settings == of_project or not (configured[:1] == "~" or os.path.isabs(configured))
            path = _absolute("sessionDir", configured, environ)
            found.append(Root(path, False, False, PROJECT if here else None))
    found.append(Root(os.path.join(agent, "sessions"), named_agent is not None, False))
    return _unique(found)


def _session_folder_in(settings: str) -> str | None:
    """``sessionDir`` in one of Pi's settings files; a file that cannot be read or understood is logged and passed over."""
    from .archive.files import open_regular

    try:
        with open_regular(settings) as file:
            content = msgspec.json.decode(file.read().removeprefix(b"\xef\xbb\xbf"))
        folder = content.get("sessionDir") if isinstance(content, dict) else None
        return folder if isinstance(folder, str) and folder.strip() and "\0" not in folder else None
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, RecursionError) as problem:
        log_warning("Pi settings file %r is passed over: %s", settings, problem)
        return None


def _unique(roots: Iterable[Root]) -> tuple[Root, ...]:
    """Roots in order, each folder once, with the stronger of its claims."""
    found: dict[str, Root] = {}
    for root in roots:
        key = os.path.normcase(root.path)
        first = found.get(key, root)
        label = first.label and root.label
        found[key] = Root(first.path, first.explicit or root.explicit, first.required or root.required, label)
    return tuple(found.values())


def _default_index(roots: tuple[Root, ...]) -> str:
    """One index per set of roots, in the user's cache folder."""
    import hashlib

    import platformdirs

    paths = "\0".join(sorted(root.path for root in roots))
    name = hashlib.sha256(paths.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    try:
        folder = platformdirs.user_cache_dir("harness-session-history", appauthor=False)
    except RuntimeError as problem:
        raise _homeless() from problem
    if folder.startswith("~"):
        raise _homeless()
    return os.path.join(_from_here("the cache folder", folder), name, INDEX_NAME)


def _current(argument: object, environ: Mapping[str, str]) -> str | None:
    if argument is None:
        argument = environ.get("SESSION_HISTORY_CURRENT", "").strip() or environ.get("PI_SESSION_ID", "")
    elif not isinstance(argument, str):
        raise InvalidRequest(f"current_session_id must be a string, not {type(argument).__name__}")
    elif len(argument) > MAX_ID_CHARS:
        raise InvalidRequest(f"current_session_id must be at most {MAX_ID_CHARS} characters, not {len(argument)}")
    return plain_id(str(argument).strip()) or None


def _switch(name: str, environ: Mapping[str, str], *, default: bool) -> bool:
    said = environ.get(name, "").strip().lower()
    if said not in ("", "on", "off"):
        raise InvalidRequest(f"{name} must be on or off")
    return said == "on" if said else default


def _redact(argument: object, environ: Mapping[str, str]) -> bool:
    if not (argument is None or isinstance(argument, bool)):
        raise InvalidRequest(f"redact must be True or False, not {type(argument).__name__}")
    on = _switch("SESSION_HISTORY_REDACT", environ, default=False) if argument is None else argument
    if on:
        from importlib.util import find_spec

        try:
            installed = find_spec("kingfisher_sdk") is not None
        except ValueError:  # something else has its name
            installed = False
        if not installed:
            raise InvalidRequest(
                'redact needs what is not installed: pip install "harness-session-history[redact]"',
                hint="Install it, or leave redact (SESSION_HISTORY_REDACT) off: nothing is masked then.",
            )
    return on


def _max_line(environ: Mapping[str, str]) -> int:
    said = environ.get("SESSION_HISTORY_MAX_LINE", "").strip()
    if said and not (said.isascii() and said.isdigit() and len(said) <= 4 and 1 <= int(said) <= MOST_MAX_LINE):
        raise InvalidRequest(f"SESSION_HISTORY_MAX_LINE must be a whole number of MB from 1 to {MOST_MAX_LINE}")
    return int(said) << 20 if said else MAX_LINE


def _catch_up(argument: object, environ: Mapping[str, str]) -> float | None:
    name, value = "catch_up", argument
    if argument is None:
        name, value = "SESSION_HISTORY_CATCH_UP", environ.get("SESSION_HISTORY_CATCH_UP", "").strip() or None
        if value is None:
            return None
    try:
        seconds = float(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else -1.0
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= MAX_CATCH_UP:
        raise InvalidRequest(f"{name} must be a number of seconds from 0 to {MAX_CATCH_UP:g}")
    return seconds


def _variable(name: str, environ: Mapping[str, str]) -> str | None:
    """The path in an environment variable; None if it is not set or blank."""
    value = environ.get(name, "")
    return _absolute(name, value, environ) if value.strip() else None


def _path(argument: str, value: object, environ: Mapping[str, str]) -> str | None:
    """The path in an argument; None if it is None."""
    if value is None and argument != "roots":
        return None
    if not isinstance(value, (str, os.PathLike)):
        raise InvalidRequest(f"{argument} must be a path (str or PathLike), not {type(value).__name__}")
    path = os.fsdecode(value)
    if not path.strip():
        raise InvalidRequest(f"{argument} must not be an empty path")
    return _absolute(argument, path, environ)


def _absolute(source: str, path: str, environ: Mapping[str, str]) -> str:
    if "\0" in path:
        raise InvalidRequest(f"{source} must not hold a NUL character")
    try:
        os.fsencode(path)
    except UnicodeEncodeError as problem:
        raise InvalidRequest(f"{source} holds a lone surrogate, which no path of this system can") from problem
    if path[:1] == "~":
        separators = (os.sep, os.altsep or os.sep)
        path = _home(environ) + path[1:] if path[1:2] in ("", *separators) else os.path.expanduser(path)
    return _from_here(source, path)


def _from_here(source: str, path: str) -> str:
    try:
        return os.path.abspath(path)
    except OSError as problem:
        raise InvalidRequest(f"{source} is relative, and the working folder is gone") from problem


def _home(environ: Mapping[str, str]) -> str:
    name = "USERPROFILE" if os.name == "nt" else "HOME"
    home = environ.get(name, "") or os.path.expanduser("~")
    if home.startswith("~"):
        raise _homeless()
    return _from_here(name, home)


def _homeless() -> InvalidRequest:
    return InvalidRequest(
        "the home folder is unknown",
        hint="Set HOME, or name both the roots (SESSION_HISTORY_ROOTS) and the index file (SESSION_HISTORY_INDEX).",
    )
