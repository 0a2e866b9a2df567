//! Text made harmless: for the model and for the terminal.
