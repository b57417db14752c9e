"""The only folder that knows HiGHS and Pyomo."""
