"""Why a schedule is faster, in words and pictures."""
