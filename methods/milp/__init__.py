"""The mixed-integer layer that methods share: a space as variables, classifiers as constraints."""
