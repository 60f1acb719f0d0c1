"""Tool calling: the loop, and running what the model asks for."""
