"""Advice: chunk shapes that waste less."""
