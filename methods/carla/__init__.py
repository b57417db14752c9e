"""Methods of the CARLA library, run by its own code: no line of theirs is restated here."""
