"""Certifies that a rescheduled cubin is as safe as the original, or names the first broken dependence."""

from cuasmrl.checker.version import VERSION

# As `typing` has it, whose import takes longer than all that is needed to deploy.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from cuasmrl.checker.proof import Checker, check
    from cuasmrl.checker.verdict import Certificate, Refusal, Rule

__all__ = ["VERSION", "Certificate", "Checker", "Refusal", "Rule", "check"]


def __getattr__(name: str) -> object:
    """The store compares versions before each deployment; it does not wait for the checker to load."""
    if name in ("Checker", "check"):
        from cuasmrl.checker import proof

        return getattr(proof, name)
    if name in ("Certificate", "Refusal", "Rule"):
        from cuasmrl.checker import verdict

        return getattr(verdict, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
