"""Methods that run in a process of their own, in an environment or a language of their own."""
