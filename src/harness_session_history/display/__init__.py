"""SessionViews of an answer for people: notebook cards, terminal cards, plain text, progress.

A view only reads the answer's dict. Whatever stands in it besides its structure is treated as hostile text: it is
bounded, freed of control characters and escaped again here, whoever cleaned it before.
"""
