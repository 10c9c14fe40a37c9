"""Version of the rules that the checker proves by, which every certificate carries.

It stands apart from the checker for those who only compare it and cannot wait for the checker to load.
"""

VERSION = "2"
