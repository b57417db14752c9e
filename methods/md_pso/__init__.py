"""MD-PSO: counterfactuals by a particle swarm."""

from methods.md_pso.method import MdPso

__all__ = ["MdPso"]
