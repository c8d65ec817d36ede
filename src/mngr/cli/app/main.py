"""From argv to an exit code: find the command, parse, run it, and turn any error into one line."""

from __future__ import annotations

import codecs
import os
import sys

from mngr import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from mngr.cli.app.parser import Namespace, Parser
    from mngr.plugins.registry import Command, Registry
    from mngr.settings.layers import Config


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return the exit code; import only what `--version` requires."""
    words = list(sys.argv[1:] if argv is None else argv)
    _open_streams()
    try:
        code = _answer(words)
        _flush()
        return code
    except BaseException as error:
        return _report(error, words)


def _answer(words: list[str]) -> int:
    if words[:1] == ["--version"]:
        return _version()
    if words[:1] == ["__complete"]:
        from mngr.cli.app.complete import complete

        return complete(words[2:] if words[1:2] == ["--"] else words[1:])
    import gc

    # A short run ends before garbage collection pays off: these lines save a tenth of `list`.
    gc.set_threshold(100_000, 50, 50)
    try:
        return _run(words)
    finally:
        gc.freeze()


def _version() -> int:
    print(f"mngr {__version__}")
    return 0


def _run(words: list[str]) -> int:
    from mngr.cli.app.parser import settings_in, split_command
    from mngr.plugins.registry import load_registry
    from mngr.settings.layers import load_config

    before, word, after = split_command(words)
    if "--version" in before:
        return _version()
    if not word:
        before = [each for each in before if each != "--help"]
    config = load_config(settings_in(words), strict=False)
    registry = load_registry(config)
    try:
        if not words or (not word and "-h" in before):
            from mngr.cli.app.screen import overview_screen

            sys.stdout.write(overview_screen(registry))
            return 0
        return _run_command(registry, registry.resolve(word or "help"), config, before + after)
    finally:
        _warn(*registry.problems)


def _run_command(registry: Registry, command: Command, config: Config, argv: list[str]) -> int:
    module = registry.load_command(command.name)
    parser = make_parser(registry, command.name)
    if _has(argv, "--help"):
        from mngr.cli.app.manual import command_page, show

        return show(command_page(parser))
    if _has(argv, "-h"):
        from mngr.cli.app.screen import command_screen

        sys.stdout.write(command_screen(parser, argv))
        return 0
    _check_settings(config, module)
    _check_commands(config, registry)
    from mngr.errors import MngrError

    args = _parse(parser, module, config, registry, argv)
    try:
        return int(module.run(args) or 0)
    except MngrError as error:
        from mngr.cli.app.output import failed

        failed(args, error)
        raise


def make_parser(registry: Registry, name: str) -> Parser:
    """Return a command's parser, without the user's settings."""
    from mngr.cli.app.parser import Parser

    command = registry.resolve(name)
    parser = Parser(command.name, command.help, command.aliases)
    registry.load_command(name).configure(parser)
    return parser


def command_named(registry: Registry, word: str) -> str:
    """Return the command's name; raise for an alias, because defaults use the full name."""
    full = registry.resolve(word).name
    if full != word:
        from mngr.errors import UsageError

        raise UsageError(f"{word!r} is an alias of {full!r}", f"use commands.{full}")
    return full


def parsed(registry: Registry, config: Config, name: str, argv: list[str]) -> Namespace:
    """Return the parsed arguments of another command, for a command that does part of its work."""
    return _parse(make_parser(registry, name), registry.load_command(name), config, registry, argv)


def _check_settings(config: Config, module: ModuleType) -> None:
    """Raise for a broken settings file, except in commands that help to repair it.

    An unknown key is only a warning: it may belong to another version of mngr.
    """
    if config.problems and not getattr(module, "SETTINGS_OPTIONAL", False):
        raise config.problems[0]
    if not getattr(module, "SHOWS_SETTINGS", False):
        _warn(*map(str, config.faults))


def _check_commands(config: Config, registry: Registry) -> None:
    """Warn about defaults for commands that do not exist.

    Only a warning: settings are shared, and the plugin may be installed elsewhere.
    """
    unknown = [name for name in config.table("commands") if name not in registry.commands]
    if unknown and all(plugin.enabled and not plugin.problem for plugin in registry.plugins):
        from mngr.errors import UsageError

        for name in unknown:
            try:
                command_named(registry, name)
            except UsageError as problem:
                _warn(f"commands.{name} in {config.origin(f'commands.{name}')}: {problem}")


def _parse(
    parser: Parser, module: ModuleType, config: Config, registry: Registry, argv: list[str]
) -> Namespace:
    from mngr.errors import UsageError

    try:
        _lay_settings(parser, config)
    except UsageError as problem:
        if not getattr(module, "SETTINGS_OPTIONAL", False):
            raise
        _warn(str(problem))
    args = _attached(parser, config, registry, argv)
    if hasattr(module, "defaults"):
        parser.layer(parser.coerce(module.defaults(args), f"{parser.prog}: defaults"))
        args = _attached(parser, config, registry, argv)
    return args


def _lay_settings(parser: Parser, config: Config) -> None:
    for key, value in config.command_defaults(parser.command).items():
        from mngr.errors import UnknownSetting
        from mngr.settings.schema import join_key

        where = config.origin(join_key(("commands", parser.command, key)))
        try:
            parser.layer(parser.coerce({key: value}, f"{where}: commands.{parser.command}"))
        except UnknownSetting as problem:
            if where == "-S":
                raise
            _warn(str(problem))


def _attached(parser: Parser, config: Config, registry: Registry, argv: list[str]) -> Namespace:
    args = parser.parse(argv)
    args.headless = args.headless or config.get("headless") is True
    args.command, args.parser, args.config, args.registry = (
        parser.command,
        parser,
        config,
        registry,
    )
    return args


def _has(words: list[str], *options: str) -> bool:
    own = words[: words.index("--")] if "--" in words else words
    return any(option in own for option in options)


def _report(error: BaseException, words: list[str]) -> int:
    """Print the error in one line and return the exit code."""
    from mngr.errors import MngrError

    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    if isinstance(error, KeyboardInterrupt):
        return 130
    if isinstance(error, BrokenPipeError):
        _discard_output()
        return 141
    if isinstance(error, MngrError):
        _trace(error.__cause__, words)
        return _fail(str(error), error.exit_code)
    if isinstance(error, OSError):
        _trace(error, words)
        return _fail(_system_error(error), 1)
    _trace(error, words)
    what = f"internal error: {type(error).__name__}: {error}"
    return _fail(f"{what}; run again with -v for the traceback", 1)


def _system_error(error: OSError) -> str:
    reason = error.strerror or str(error)
    files = [str(name) for name in (error.filename, error.filename2) if name is not None]
    return ": ".join([" -> ".join(files), reason] if files else [reason])


def _fail(text: str, code: int) -> int:
    try:
        sys.stdout.flush()
    except OSError:
        _discard_output()
    try:
        _warn(text)
    except OSError:  # stderr is closed; the exit code is enough
        pass
    return code


def _flush() -> None:
    try:
        sys.stdout.flush()
    except OSError as error:
        error.filename = "standard output"
        raise


def _warn(*lines: str) -> None:
    if lines:
        from mngr.cli.app.output import warn

        for line in lines:
            warn(" ".join(line.split("\n")))


def _trace(error: BaseException | None, words: list[str]) -> None:
    if error is not None and _has(words, "-v", "--verbose"):
        import traceback

        traceback.print_exception(error)


def _open_streams() -> None:
    """Replace closed streams, which are None, and escape characters that cannot be encoded."""
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))
        elif name != "stdin" and hasattr(stream, "reconfigure"):
            to_program = name == "stdout" and not stream.isatty()
            stream.reconfigure(errors="mngr" if to_program else "backslashreplace")


def _restored(error: UnicodeError) -> tuple[str | bytes, int]:
    """Return the bytes of a file name that is not UTF-8, so that a script gets the real name."""
    try:
        return codecs.lookup_error("surrogateescape")(error)
    except UnicodeError:
        return codecs.backslashreplace_errors(error)


codecs.register_error("mngr", _restored)


def _discard_output() -> None:
    """Redirect stdout to /dev/null, so that the flush at exit prints no error."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 1)
    os.close(devnull)
