"""Code that users run: public wheels with GPU code in them, and everything this program does with it."""
