"""Stored studies as static pages: a board, methods, data sets, single questions, the papers' tables, downloads."""
