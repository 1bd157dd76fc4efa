"""What may leave a transcript, and the one analysis of text for index, query and snippet. Imports nothing but model."""
