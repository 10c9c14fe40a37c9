"""The assembly game in a browser: played by people, watched while an agent plays, or recorded."""
