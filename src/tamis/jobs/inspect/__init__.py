"""The result of `tamis.inspect`, and its forms: terminal, JSON, notebook, arguments of other programs."""
