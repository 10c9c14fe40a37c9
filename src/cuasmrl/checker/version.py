"""Version of the rules that the checker proves by, which every certificate carries."""

VERSION = "8"
