"""The one exception users see: a clear sentence saying what, where and what to do."""


class CuasmrlError(Exception):
    """Bad input or a missing tool; the command line prints it and exits with status 2."""
