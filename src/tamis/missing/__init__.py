"""Which values are missing: what stands for them, filling the gaps that they leave, and putting them back."""
