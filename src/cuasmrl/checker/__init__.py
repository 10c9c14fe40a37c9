"""Certifies that a rescheduled cubin is as safe as the original, or names the first broken dependence."""

from cuasmrl.checker.check import Checker, check
from cuasmrl.checker.verdict import Certificate, Refusal, Rule
from cuasmrl.rules import VERSION

__all__ = ["VERSION", "Certificate", "Checker", "Refusal", "Rule", "check"]
