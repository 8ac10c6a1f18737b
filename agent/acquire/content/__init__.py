"""What a file is, by its bytes; what runs when it is loaded is told here."""
