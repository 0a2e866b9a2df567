//! What the model can call.
