"""CE-OCL: exact closest counterfactuals of embedded models."""

from methods.ce_ocl.method import CeOcl

__all__ = ["CeOcl"]
