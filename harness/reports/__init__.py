"""Tables, figures and pages of stored answers."""
