"""A ptxas that runs the real one and then takes its code from the store, for any program that calls ptxas."""
